"""The two connections of a store: a `PostgresFlush` writes with its own, a `Reader` asks with its own.

A flush is a batch in one transaction, begun again while nothing of it is durable. Chains that were last seen
in another era are looked at before anything is written behind them. What became of a COMMIT whose answer was
lost is asked for. A question is one statement, asked again on a new connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import psycopg
from psycopg.errors import LockNotAvailable

from tallystick import crash
from tallystick.clock import Clock
from tallystick.core.chain import GENESIS, Chain, Era
from tallystick.errors import BadInput, OutcomeUnknown, StoreError
from tallystick.store.api import Bundle, ExpiredAttempt, Fence, Outcome, Overdue, RenewLeases
from tallystick.store.chains import as_known
from tallystick.store.postgres.claiming.claim_cursor import ClaimCursor
from tallystick.store.postgres.crash_points import AROUND
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.commit_outcome import Fate, fate
from tallystick.store.postgres.server.connection import (
    REFUSALS,
    TRANSIENT,
    AnsweringConnection,
    Eras,
    Lost,
    begin,
    connect,
    discard,
    given_up,
    is_lost,
    read,
    retrying,
    translated,
)
from tallystick.store.postgres.server.listener import Listener
from tallystick.store.postgres.server.migrations import refuse_newer
from tallystick.store.postgres.server.wire import Wire, wire
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.store.postgres.writing import Times
from tallystick.store.refusals import UNSTORABLE

FLUSH_TRIES_MAX = 24
READ_TRIES_MAX = 24
READ_SECONDS_MAX = 45.0
_AT_ONCE: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"

T = TypeVar("T")
Rows: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

BEGUN = crash.declare("postgres.begin.before", "a batch is about to begin its transaction")
BEFORE_COMMIT = crash.declare("postgres.commit.before", "a batch is written and nothing of it is durable")
AFTER_COMMIT = crash.declare("postgres.commit.after", "a batch is durable and no caller has its outcome")


class PostgresFlush:
    """How batches are written with the one connection that writes; one caller at a time."""

    def __init__(
        self,
        address: Address,
        times: Callable[[], Times],
        cursor: ClaimCursor,
        listener: Listener,
        eras: Eras,
    ) -> None:
        """Open nothing yet."""
        self._address = address
        self._give_up = partial(given_up, address)
        self._times = times
        self._cursor = cursor
        self._listener = listener
        self._eras = eras
        self._wire: Wire | None = None

    def close(self) -> None:
        """Close the connection."""
        discard(None if self._wire is None else self._wire.connection)

    def write(
        self, batch: Sequence[Bundle], chains: Mapping[Chain, Fence], *, again: bool = False
    ) -> list[Outcome | BaseException]:
        """Make a batch durable, which extends these chains, and return one outcome per bundle."""
        outcomes = retrying(
            lambda: self._look_and_flush(batch, chains, again=again),
            FLUSH_TRIES_MAX,
            self._give_up,
        )
        assert isinstance(outcomes, list)
        return outcomes

    def _look_and_flush(
        self, batch: Sequence[Bundle], chains: Mapping[Chain, Fence], *, again: bool
    ) -> list[Outcome | BaseException]:
        """Write and commit what goes on from where its chains end; `Lost` when it can be begun again."""
        try:
            wire = self._open_wire()
        except StoreError as error:
            raise Lost(error) from error
        era = self._eras.now
        doubtful = {chain: fence for chain, fence in chains.items() if chain.era is not era}
        if not doubtful:
            return self._flush(wire, batch, era, again=again)
        known = as_known(batch, self._ends(wire, doubtful), era)
        bundles = [bundle for bundle in known if isinstance(bundle, tuple)]
        written = iter(self._flush(wire, bundles, era, again=again) if bundles else ())
        return [next(written) if isinstance(bundle, tuple) else bundle for bundle in known]

    def _ends(self, wire: Wire, chains: Mapping[Chain, Fence]) -> dict[Chain, tuple[int, bytes]]:
        """Return where chains end whose holders still hold them, read when no process writes for them."""
        times = self._times()
        connection = wire.connection
        order = sorted(chains.items(), key=lambda held: held[1])
        try:
            with connection.pipeline():
                begin(connection, self._address)
                # In statements of their own: one that waits for a lock does not see what it has waited for.
                looks = [
                    (
                        connection.execute(sql("live_attempt"), (*fence, times.epoch, times.lease)),
                        connection.execute(sql("chain_head"), (fence.job_id,)),
                    )
                    for _chain, fence in order
                ]
                connection.execute(b"COMMIT")
            found = [(live.fetchall(), head.fetchall()) for live, head in looks]
        except psycopg.Error as error:
            self._roll_back(connection)
            raise self._loss(connection, error) from error
        ends = zip(order, found, strict=True)
        return {chain: head[0] if head else (0, GENESIS) for (chain, _), (live, head) in ends if live}

    def _flush(
        self, wire: Wire, batch: Sequence[Bundle], era: Era, *, again: bool
    ) -> list[Outcome | BaseException]:
        """Write and commit; `Lost` when nothing of it became durable and it can be begun again."""
        crash.point(BEGUN)
        connection = wire.connection
        writing = PostgresBatch(wire, self._address, self._times(), self._cursor, era)
        try:
            outcomes = writing.write(batch, again=again)
            if not self._eras.answered(writing.server):
                raise Lost(StoreError(f"{self._address.url}: another server answers than before"))
        except BaseException as error:
            self._undo(connection, writing)
            if isinstance(error, psycopg.Error):
                raise self._loss(connection, error) from error
            raise
        crash.point(BEFORE_COMMIT)
        try:
            outcomes = self._commit(writing, batch, outcomes)
        except psycopg.Error as error:
            if is_lost(connection, error) and self._fate(connection, writing) is Fate.COMMITTED:
                return outcomes
            self._undo(connection, writing)
            raise self._loss(connection, error) from error
        crash.point(AFTER_COMMIT)
        if writing.wakes:
            self._listener.note()
        return outcomes

    def _commit(
        self, writing: PostgresBatch, batch: Sequence[Bundle], outcomes: list[Outcome | BaseException]
    ) -> list[Outcome | BaseException]:
        """Commit, and return what came of the batch: what travels with COMMIT may be refused too."""
        try:
            writing.commit()
        except (LockNotAvailable, *REFUSALS) as error:
            outcomes = writing.write_each(batch, held=isinstance(error, LockNotAvailable))
            writing.commit()
        return outcomes

    def _fate(self, connection: AnsweringConnection, writing: PostgresBatch) -> Fate:
        """Ask what became of a transaction, with its connection out of the way."""
        discard(connection)
        try:
            return fate(self._address, writing.xid, writing.server, writing.written())
        except OutcomeUnknown:
            writing.doubt()
            raise

    def _open_wire(self) -> Wire:
        if self._wire is None or self._wire.connection.closed:
            if self._wire is not None:
                self._eras.lost()
            connection = connect(self._address, writes=True)
            self._eras.answered(connection.facts.server)
            self._listener.own_pids = {connection.info.backend_pid}
            self._wire = wire(connection, prepares=not self._address.pooled)
        return self._wire

    def _loss(self, connection: AnsweringConnection, error: psycopg.Error) -> BaseException:
        """Return what an error means when nothing became durable: begin again, or give up."""
        if is_lost(connection, error) or isinstance(error, TRANSIENT):
            return Lost(error)
        return translated(error, self._address)

    def _undo(self, connection: AnsweringConnection, writing: PostgresBatch) -> None:
        writing.rewind()
        self._roll_back(connection)

    def _roll_back(self, connection: AnsweringConnection) -> None:
        try:
            connection.execute(b"ROLLBACK")
        except psycopg.Error:
            discard(connection)


class Reader:
    """Answers that are true when they are given; nothing is decided by them without a guard."""

    def __init__(self, address: Address) -> None:
        """Open nothing yet."""
        self._address = address
        self._give_up = partial(given_up, address)
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
        ((version,),) = self.rows("schema_version", [])
        refuse_newer(version, self._address)
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
            retrying(
                lambda: self._talk(looked),
                READ_TRIES_MAX,
                self._give_up,
                seconds_max=READ_SECONDS_MAX,
            )
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
