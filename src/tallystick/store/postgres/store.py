"""The store on PostgreSQL: one connection that writes, for the committer, one that reads, a few on loan."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from tallystick import crash
from tallystick.clock import Clock, SystemClock
from tallystick.core.chain import GENESIS, Chain, Era
from tallystick.errors import OutcomeUnknown, StoreError, StoreMisused, TxTooLong
from tallystick.store.api import (
    Bundle,
    ChildRow,
    Event,
    ExpiredAttempt,
    Fence,
    Group,
    JobRow,
    Outcome,
    RecordStep,
    RunTx,
    Transaction,
    call_off,
)
from tallystick.store.doubts import as_known, held_chains
from tallystick.store.postgres.address import parse_address
from tallystick.store.postgres.connection import (
    TRANSIENT,
    AnsweringConnection,
    begin,
    connect,
    discard,
    is_away,
    is_lost,
    translated,
)
from tallystick.store.postgres.eras import Eras
from tallystick.store.postgres.fate import Fate, Lost, fate, retrying
from tallystick.store.postgres.floors import Floors
from tallystick.store.postgres.inspection import PostgresInspection
from tallystick.store.postgres.lending import Lending
from tallystick.store.postgres.listener import Listener
from tallystick.store.postgres.migrations import migrate
from tallystick.store.postgres.reads import READ_SECONDS_MAX, READ_TRIES_MAX, Reader
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.transaction import PostgresTransaction
from tallystick.store.postgres.wire import Wire
from tallystick.store.postgres.writer import Batch
from tallystick.store.postgres.writing import Times

FLUSH_TRIES_MAX = 24

BEGUN = crash.declare("postgres.begin.before", "a batch is about to begin its transaction")
BEFORE_COMMIT = crash.declare("postgres.commit.before", "a batch is written and nothing of it is durable")
AFTER_COMMIT = crash.declare("postgres.commit.after", "a batch is durable and nobody has been told")


class PostgresStore:
    """Bundles in one schema of a PostgreSQL database."""

    def __init__(self, url: str, clock: Clock, *, create: bool = True) -> None:
        """Open the database and bring its schema up to date."""
        self._address = parse_address(url)
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._writing = threading.Lock()
        self._wire: Wire | None = None
        self._floors = Floors(clock)
        self._eras = Eras()
        retrying(
            lambda: self._migrate(create=create),
            READ_TRIES_MAX,
            lambda lost: lost.error,
            seconds_max=READ_SECONDS_MAX,
        )
        self._reader = Reader(self._address)
        self._listener = Listener(self._address, clock)
        self._lending = Lending(self._address, self.times, self._listener.note, self._eras)

    def _migrate(self, *, create: bool) -> None:
        """Bring the schema up to date; `Lost` when the server went away, and may well be back at once."""
        connection: AnsweringConnection | None = None
        try:
            connection = connect(self._address)
            migrate(connection, self._address, create=create)
        except StoreError as error:
            if is_away(error.__cause__):
                raise Lost(error) from error
            raise
        finally:
            discard(connection)

    @property
    def url(self) -> str:
        """Return the address, without secrets."""
        return self._address.url

    def times(self) -> Times:
        """Return which clock counts: that of the server, unless a test brought its own."""
        clock = self._clock
        if isinstance(clock, SystemClock):
            return Times()
        return Times(clock.epoch(), str(clock.boot_ms()), str(clock.wall_ms()))

    def apply(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Make a batch durable in one transaction and return one outcome a bundle."""
        try:
            return self._apply(batch)
        except BaseException:
            call_off(batch)
            raise

    def _apply(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        self._check_usable()
        self._lending.check_not_lent()
        if not batch:
            return []
        turns = {
            index: bundle[0]
            for index, bundle in enumerate(batch)
            if isinstance(bundle[0], RunTx) and len(bundle) == 1
        }
        if not turns:
            return self._write(batch)
        outcomes: list[Outcome | BaseException] = [None] * len(batch)
        for index, request in turns.items():
            outcomes[index] = self._take_turn(request)
        plain = [index for index in range(len(batch)) if index not in turns]
        if plain:
            for index, outcome in zip(plain, self._write([batch[index] for index in plain]), strict=True):
                outcomes[index] = outcome
        return outcomes

    def run_tx(
        self, fence: Fence, body: Callable[[Transaction], RecordStep], ms_max: int, lease_ms: int
    ) -> RecordStep:
        """Run a user's function in a transaction of its own, in this thread, and record its step there."""
        self._check_usable()
        return self._lending.run_tx(fence, body, ms_max, lease_ms)

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        """Lend a connection of its own to the calling thread: the user's rows and ours in one transaction."""
        self._check_usable()
        with self._lending.transaction() as transaction:
            yield transaction

    @contextmanager
    def connect(self) -> Iterator[PostgresTransaction]:
        """Lend a connection of its own to the calling thread, for reading."""
        self._check_usable()
        with self._lending.reading() as transaction:
            yield transaction

    def join(self, connection: object) -> Transaction:
        """Return a transaction of the user, on a psycopg connection or an SQLAlchemy session, as ours."""
        self._check_usable()
        return self._lending.join(connection)

    def checkpoint(self) -> None:
        """Do nothing: the server looks after itself."""

    def pulse(self) -> int:
        """Return a number that is another one when there may be work, or when it is time to look."""
        self._check_usable()
        return self._listener.pulse()

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:  # noqa: ARG002 (as every store)
        """Do nothing: the number of `pulse` comes from a listener on the server already."""
        return lambda: None

    def next_due(self, queues: Sequence[str], after: int = 0) -> int | None:
        """Return when the next job of these queues becomes due."""
        self._check_usable()
        return self._reader.next_due(queues, after, self.times(), self._clock)

    def unattended(self) -> bool:
        """Tell, with one statement, whether a sweep may find anything."""
        self._check_usable()
        return self._reader.unattended(self.times())

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out by the clock of the server, oldest first."""
        self._check_usable()
        return self._reader.expired(self.times(), limit)

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        self._check_usable()
        return self._reader.job(job_id)

    def jobs(
        self,
        *,
        tenant_id: str,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
        tag: str | None = None,
    ) -> list[JobRow]:
        """Return a page of jobs, newest first."""
        self._check_usable()
        return self._reader.jobs(tenant_id, states, handler, after, limit, tag)

    def has_signal(self, job_id: str, names: Sequence[str]) -> bool:
        """Tell whether a signal of one of these names is in the job's inbox."""
        self._check_usable()
        return self._reader.has_signal(job_id, names)

    def interrupted(self, job_ids: Sequence[str]) -> list[tuple[str, bool, str | None]]:
        """Return those of these jobs that are asked to end or held."""
        self._check_usable()
        return self._reader.interrupted(job_ids)

    def dead(self, *, tenant_id: str, handler: str | None, after: str | None, limit: int) -> list[JobRow]:
        """Return a page of jobs that have failed and were not retried, newest first."""
        self._check_usable()
        return self._reader.dead(tenant_id, handler, after, limit)

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        self._check_usable()
        return self._reader.finished(job_ids)

    def children(self, job_id: str, group: Group, *, after: str, limit: int) -> list[ChildRow]:
        """Return a page of the children of a group in their order."""
        self._check_usable()
        return self._reader.children(job_id, group, after, limit)

    def orphans(self, limit: int) -> list[str]:
        """Return children that go on although their parent has ended."""
        self._check_usable()
        return self._reader.orphans(limit)

    def cancelling(self, limit: int) -> list[tuple[str, int]]:
        """Return jobs that are asked to end and have not, with the end of their grace, soonest first."""
        self._check_usable()
        return self._reader.cancelling(limit)

    def history(self, job_id: str) -> list[Event]:
        """Return every event of a job in order, inline steps included."""
        return self.inspect().facts(job_id, after=0, limit=-1)

    def inspect(self) -> PostgresInspection:
        """Return the reads of a check."""
        self._check_usable()
        return PostgresInspection(self._address, self._reader)

    def counts(self) -> dict[str, int]:
        """Return how many jobs stand in each state."""
        self._check_usable()
        return self._reader.counts()

    def close(self) -> None:
        """Close every connection and end the listener."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._listener.close()
        self._lending.close()
        self._reader.close()
        with self._writing:
            discard(None if self._wire is None else self._wire.connection)

    def _write(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Write a batch with the one connection that writes."""
        chains = held_chains(batch)
        with self._writing, self._lending.authors.writing({chain.job_id for chain in chains}):
            self._check_usable()
            outcomes = retrying(lambda: self._look_and_flush(batch, chains), FLUSH_TRIES_MAX, self._give_up)
        assert isinstance(outcomes, list)
        return outcomes

    def _look_and_flush(
        self, batch: Sequence[Bundle], chains: Mapping[Chain, Fence]
    ) -> list[Outcome | BaseException]:
        """Write and commit what goes on from where its chains end; `Lost` when it can be begun again."""
        try:
            wire = self._open_wire()
        except StoreError as error:
            raise Lost(error) from error
        era = self._eras.now
        doubtful = {chain: fence for chain, fence in chains.items() if chain.era is not era}
        if not doubtful:
            return self._flush(wire, batch, era)
        known = as_known(batch, self._ends(wire, doubtful), era)
        bundles = [bundle for bundle in known if isinstance(bundle, tuple)]
        written = iter(self._flush(wire, bundles, era) if bundles else ())
        return [next(written) if isinstance(bundle, tuple) else bundle for bundle in known]

    def _ends(self, wire: Wire, chains: Mapping[Chain, Fence]) -> dict[Chain, tuple[int, bytes]]:
        """Return where chains end whose holders still hold them, read when nobody is writing for them."""
        times = self.times()
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

    def _flush(self, wire: Wire, batch: Sequence[Bundle], era: Era) -> list[Outcome | BaseException]:
        """Write and commit; `Lost` when nothing of it became durable and it can be begun again."""
        crash.point(BEGUN)
        connection = wire.connection
        writing = Batch(wire, self._address, self.times(), self._floors, era)
        try:
            outcomes = writing.write(batch)
            if not self._eras.answered(writing.server):
                raise Lost(StoreError(f"{self.url}: another server answers than before"))
        except BaseException as error:
            self._undo(connection, writing)
            if isinstance(error, psycopg.Error):
                raise self._loss(connection, error) from error
            raise
        crash.point(BEFORE_COMMIT)
        wakes = writing.wakes
        try:
            writing.commit()
        except psycopg.Error as error:
            if is_lost(connection, error) and self._fate(connection, writing) is Fate.COMMITTED:
                return outcomes
            self._undo(connection, writing)
            raise self._loss(connection, error) from error
        crash.point(AFTER_COMMIT)
        if wakes or self._floors.owes:
            self._listener.note()
        return outcomes

    def _fate(self, connection: AnsweringConnection, writing: Batch) -> Fate:
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
            connection = connect(self._address)
            self._eras.answered(connection.facts.server)
            self._listener.own_pids = {connection.info.backend_pid}
            self._wire = Wire(connection, prepares=not self._address.pooled)
        return self._wire

    def _loss(self, connection: AnsweringConnection, error: psycopg.Error) -> BaseException:
        """Return what an error means when nothing became durable: begin again, or give up."""
        if is_lost(connection, error) or isinstance(error, TRANSIENT):
            return Lost(error)
        return translated(error, self._address)

    def _undo(self, connection: AnsweringConnection, writing: Batch) -> None:
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

    def _take_turn(self, request: RunTx) -> Outcome | BaseException:
        """Lend a transaction to the thread that waits for its turn."""

        def body(loan: Transaction) -> RecordStep:
            step = request.turn.lend(loan, request.ms_max / 1000)
            if step is None:
                raise TxTooLong(f"the transaction took more than {request.ms_max} ms", ms_max=request.ms_max)
            return step

        try:
            return self._lending.run_tx(request.fence, body, request.ms_max, 0, tries_max=1)
        except Exception as error:  # noqa: BLE001 (it is the outcome of this bundle and of no other)
            return error
        finally:
            request.turn.call_off()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreMisused("this store was opened before a fork; open the Tally in the child instead")
        if self._closed:
            raise StoreMisused("this store is closed")
