"""One flush: a batch in one transaction, begun again while nothing of it is durable.

Chains that were last seen in another era are looked at before anything is written behind them. What became
of a COMMIT whose answer was lost is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import psycopg
from psycopg.errors import LockNotAvailable

from tallystick import crash
from tallystick.core.chain import GENESIS, Chain, Era
from tallystick.errors import OutcomeUnknown, StoreError
from tallystick.store.api import Bundle, Fence, Outcome
from tallystick.store.chains import as_known
from tallystick.store.postgres.claiming.claim_cursor import ClaimCursor
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.commit_outcome import Eras, Fate, Lost, fate, retrying
from tallystick.store.postgres.server.connection import (
    REFUSALS,
    TRANSIENT,
    AnsweringConnection,
    begin,
    connect,
    discard,
    is_lost,
    translated,
)
from tallystick.store.postgres.server.listener import Listener
from tallystick.store.postgres.server.wire import Wire, wire
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.store.postgres.writing import Times

FLUSH_TRIES_MAX = 24

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
            lambda: self._look_and_flush(batch, chains, again=again), FLUSH_TRIES_MAX, self._give_up
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

    def _give_up(self, lost: Lost) -> BaseException:
        error = lost.error
        return translated(error, self._address) if isinstance(error, psycopg.Error) else error
