"""What people and programs look at: one connection, one statement per question."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import psycopg

from tallystick import crash
from tallystick.clock import Clock
from tallystick.errors import BadInput, StoreError
from tallystick.store.api import ExpiredAttempt, Fence, Overdue, RenewLeases
from tallystick.store.postgres.crash_points import AROUND
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.commit_outcome import Lost, retrying
from tallystick.store.postgres.server.connection import (
    AnsweringConnection,
    begin,
    connect,
    discard,
    is_lost,
    read,
    translated,
)
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writing import Times
from tallystick.store.refusals import UNSTORABLE

READ_TRIES_MAX = 24
READ_SECONDS_MAX = 45.0
_AT_ONCE: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"

T = TypeVar("T")
Rows: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


class Reader:
    """Answers that are true when they are given; nothing is decided by them without a guard."""

    def __init__(self, address: Address) -> None:
        """Open nothing yet."""
        self._address = address
        self._lock = threading.Lock()
        self._connection: AnsweringConnection | None = None
        self._ahead: int | None = None

    def next_due(self, queues: Sequence[str], after: int, times: Times, clock: Clock) -> int | None:
        """Return when the next job of these queues becomes due after an instant, both by the caller's clock.

        The server's is ahead of it by what it says, less how long its answer took. So it is never asked for
        what becomes due too late, and the caller is too late by one answer at most.
        """
        if self._ahead is None:
            ((now,),) = self.rows("now", [times.wall])
            self._ahead = now - clock.wall_ms()
        ((due, now),) = self.rows("next_due", [list(queues), after + self._ahead, times.wall])
        self._ahead = now - clock.wall_ms()
        return None if due is None else int(due - self._ahead)

    def expired(self, times: Times, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out, oldest first."""
        rows = self.rows("expired", [times.epoch, times.lease, limit])
        return [ExpiredAttempt(Fence._make(fence), unit) for *fence, unit in rows]

    def renew(self, request: RenewLeases, times: Times) -> set[Fence]:
        """Move the end of leases that are live, and return the fences that are still held.

        The one thing that is written here: it waits for no lock, and may be done twice.
        """
        crash.point(AROUND["renew"][0])
        listed = msgspec.json.encode(request.fences).decode()
        rows = self.rows("renew_leases", [listed, times.epoch, times.lease, str(request.lease_ms)])
        crash.point(AROUND["renew"][1])
        return {Fence._make(row) for row in rows}

    def overdue(self, times: Times, limit: int) -> list[Overdue]:
        """Return jobs whose grace or deadline is over, the longest over first."""
        return [Overdue._make(row) for row in self.rows("overdue", [limit, times.wall])]

    def next_end(self, times: Times, clock: Clock) -> int | None:
        """Return when the next grace or deadline is over, by the caller's clock."""
        ((at, now),) = self.rows("next_end", [times.wall])
        return None if at is None else int(at - now + clock.wall_ms())

    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; asked again on a new connection when the old one is gone."""
        with self._lock:
            found = retrying(
                lambda: self._talk(lambda connection: read(connection, self._address, name, parameters)),
                READ_TRIES_MAX,
                self._give_up,
                seconds_max=READ_SECONDS_MAX,
            )
        assert isinstance(found, list)
        return found

    def at_once(self, ask: Callable[[Rows], T]) -> T:
        """Let a function read several things of one instant; called again when the connection was lost."""
        done: list[T] = []

        def looked(connection: AnsweringConnection) -> None:
            begin(connection, self._address, _AT_ONCE)
            done[:] = [ask(lambda name, given: connection.execute(sql(name), given).fetchall())]
            connection.execute(b"COMMIT")

        with self._lock:
            retrying(lambda: self._talk(looked), READ_TRIES_MAX, self._give_up, seconds_max=READ_SECONDS_MAX)
        return done[0]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            discard(self._connection)

    def _talk(self, work: Callable[[AnsweringConnection], T]) -> T:
        connection = self._open()
        try:
            return work(connection)
        except (psycopg.DataError, *UNSTORABLE) as error:
            discard(connection)
            raise BadInput(f"a value cannot be looked for: {error}") from error
        except psycopg.Error as error:
            lost = is_lost(connection, error)
            discard(connection)
            if lost:
                raise Lost(error) from error
            raise translated(error, self._address) from error
        except BaseException:
            discard(connection)  # in the middle of an answer, or of a transaction
            raise

    def _open(self) -> AnsweringConnection:
        if self._connection is None or self._connection.closed:
            try:
                self._connection = connect(self._address)
            except StoreError as error:
                raise Lost(error) from error
        return self._connection

    def _give_up(self, lost: Lost) -> BaseException:
        error = lost.error
        return translated(error, self._address) if isinstance(error, psycopg.Error) else error
