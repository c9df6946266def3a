"""What people and programs look at: one connection, one statement a question."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

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
    connect,
    discard,
    is_lost,
    read,
    translated,
)
from tallystick.store.postgres.writing import Times
from tallystick.store.refusals import UNSTORABLE

READ_TRIES_MAX = 24
READ_SECONDS_MAX = 45.0


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
                lambda: self._ask(name, parameters),
                READ_TRIES_MAX,
                self._give_up,
                seconds_max=READ_SECONDS_MAX,
            )
        assert isinstance(found, list)
        return found

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            discard(self._connection)

    def _ask(self, name: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        connection = self._open()
        try:
            return read(connection, self._address, name, parameters)
        except (psycopg.DataError, *UNSTORABLE) as error:
            discard(connection)
            raise BadInput(f"a value cannot be looked for: {error}") from error
        except psycopg.Error as error:
            lost = is_lost(connection, error)
            discard(connection)
            if lost:
                raise Lost(error) from error
            raise translated(error, self._address) from error

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
