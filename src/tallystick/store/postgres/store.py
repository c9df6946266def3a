"""The store on PostgreSQL: one connection that writes, for the committer, one that reads, a few on loan."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tallystick.clock import Clock, SystemClock
from tallystick.core.limits import TRANSACTION_MS_MAX
from tallystick.errors import StoreError, StoreMisused
from tallystick.store.api import (
    Bundle,
    ExpiredAttempt,
    Fence,
    Outcome,
    Overdue,
    OwedHook,
    RecordStep,
    RenewLeases,
    RunTx,
    Transaction,
    call_off,
)
from tallystick.store.borrowing import too_long, waits_for_itself
from tallystick.store.chains import held_chains
from tallystick.store.postgres.claiming.claim_cursor import claim_cursor
from tallystick.store.postgres.inspection import PostgresInspection
from tallystick.store.postgres.server.address import parse_address
from tallystick.store.postgres.server.connection import (
    AnsweringConnection,
    Eras,
    Lost,
    connect,
    discard,
    is_away,
    retrying,
)
from tallystick.store.postgres.server.listener import Listener
from tallystick.store.postgres.server.migrations import migrate
from tallystick.store.postgres.talking import READ_SECONDS_MAX, READ_TRIES_MAX, PostgresFlush, Reader
from tallystick.store.postgres.user_transactions.foreign_async import apply_on_loop
from tallystick.store.postgres.user_transactions.home import Home
from tallystick.store.postgres.user_transactions.lending import Lending
from tallystick.store.postgres.user_transactions.library_types import LibraryTypes
from tallystick.store.postgres.user_transactions.transaction import PostgresTransaction
from tallystick.store.postgres.writing import Times
from tallystick.store.sql.effects import EffectReads
from tallystick.store.sql.protocols import ProtocolReads
from tallystick.store.sql.queueing.rows import QueueReads
from tallystick.store.sql.reads import Reads
from tallystick.store.sql.schedules import ScheduleReads
from tallystick.store.sql.watching import WatchReads


class PostgresStore(Reads, ProtocolReads, ScheduleReads, QueueReads, WatchReads, EffectReads):
    """Bundles in one schema of a PostgreSQL database."""

    def __init__(self, url: str, clock: Clock, *, create: bool = True) -> None:
        """Open the database and bring its schema up to date."""
        self._address = parse_address(url)
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._writing = threading.Lock()
        eras = Eras()
        retrying(
            lambda: self._migrate(create=create),
            READ_TRIES_MAX,
            lambda lost: lost.error,
            seconds_max=READ_SECONDS_MAX,
        )
        self._reader = Reader(self._address)
        # A connection of its own: no lock that a flush waits for costs a lease.
        self._renewer = Reader(self._address)
        self._listener = Listener(self._address, clock)
        self._home = Home(self._address, self._reader)
        self._library_types = LibraryTypes()
        self._lending = Lending(self._address, self.times, self._listener.note, eras, self._home)
        self._cursor = claim_cursor(clock)
        self._flush = PostgresFlush(self._address, self.times, self._cursor, self._listener, eras)

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

    def apply(self, batch: Sequence[Bundle], *, again: bool = False) -> list[Outcome | BaseException]:
        """Make a batch durable in one transaction and return one outcome per bundle."""
        try:
            return self._apply(batch, again=again)
        except BaseException:
            call_off(batch)
            raise

    def _apply(self, batch: Sequence[Bundle], *, again: bool) -> list[Outcome | BaseException]:
        self._check_usable()
        self.check_may_wait()
        if not batch:
            return []
        apart = {
            index: bundle[0]
            for index, bundle in enumerate(batch)
            if isinstance(bundle[0], RunTx | RenewLeases) and len(bundle) == 1
        }
        if not apart:
            return self._write(batch, again=again)
        outcomes: list[Outcome | BaseException] = [None] * len(batch)
        for index, request in apart.items():
            if isinstance(request, RenewLeases):
                outcomes[index] = self._renewer.renew(request, self.times())
            else:
                outcomes[index] = self._take_turn(request)
        plain = [index for index in range(len(batch)) if index not in apart]
        if plain:
            written = self._write([batch[index] for index in plain], again=again)
            for index, outcome in zip(plain, written, strict=True):
                outcomes[index] = outcome
        return outcomes

    def run_tx(
        self, fence: Fence, body: Callable[[Transaction], RecordStep], ms_max: int, lease_ms: int
    ) -> RecordStep:
        """Run a user's function in a transaction of its own, in this thread, and record its step there."""
        self._check_usable()
        return self._lending.run_tx(fence, body, ms_max, lease_ms)

    @contextmanager
    def transaction(self, ms_max: int = TRANSACTION_MS_MAX) -> Iterator[PostgresTransaction]:
        """Lend a connection of its own to the calling thread: the user's rows and ours in one transaction.

        When its time is up it is rolled back, whatever that thread does.
        """
        self._check_usable()
        with self._lending.transaction(ms_max) as transaction:
            yield transaction

    def check_may_wait(self) -> None:
        """Refuse to wait, in a thread that holds a transaction, for what may wait for its locks."""
        if threading.get_ident() in self._lending.borrowers.threads:
            raise waits_for_itself()

    @contextmanager
    def connect(self) -> Iterator[PostgresTransaction]:
        """Lend a connection of its own to the calling thread, for reading."""
        self._check_usable()
        with self._lending.reading() as transaction:
            yield transaction

    def join(self, transaction: object) -> Transaction:
        """Return a transaction as ours: one on loan, a psycopg connection, or an SQLAlchemy session."""
        self._check_usable()
        return self._lending.join(transaction)

    def lend_as(self, transaction: Transaction, kind: type) -> AbstractContextManager[object]:
        """Lend a transaction as a psycopg connection or an SQLAlchemy session."""
        assert isinstance(transaction, PostgresTransaction)
        return self._library_types.lend(transaction, kind)

    async def apply_on_loop(self, transaction: object, bundles: Sequence[Bundle]) -> list[Outcome]:
        """Write bundles in a transaction of the user on the running loop: of psycopg, or of SQLAlchemy."""
        self._check_usable()
        return await apply_on_loop(transaction, bundles, self._home, self._address, self.times)

    def checkpoint(self) -> None:
        """Do nothing: the server looks after itself."""

    def pulse(self) -> int:
        """Return a number that is another one when there may be work, or when it is time to look."""
        self._check_usable()
        if self._cursor.look_is_due():
            self._listener.note()
        return self._listener.pulse()

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:  # noqa: ARG002 (as every store)
        """Do nothing: the number of `pulse` comes from a listener on the server already."""
        return lambda: None

    def next_due(self, queues: Sequence[str], after: int = 0) -> int | None:
        """Return when the next job of these queues becomes due."""
        self._check_usable()
        return self._reader.next_due(queues, after, self.times(), self._clock)

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out by the clock of the server, oldest first."""
        self._check_usable()
        return self._reader.expired(self.times(), limit)

    def overdue(self, limit: int) -> list[Overdue]:
        """Return jobs whose grace or deadline is over by the server's clock."""
        self._check_usable()
        return self._reader.overdue(self.times(), limit)

    def owed_hooks(self, handlers: Sequence[str], limit: int) -> list[OwedHook]:
        """Return jobs of these workflows to which a hook is owed now."""
        return self._owed(handlers, self.now(), limit)

    def now(self) -> int:
        """Return the time by the server's clock."""
        ((now,),) = self.rows("now", [self.times().wall])
        return int(now)

    def next_end(self) -> int | None:
        """Return when the next grace or deadline is over."""
        self._check_usable()
        return self._reader.next_end(self.times(), self._clock)

    def inspect(self) -> PostgresInspection:
        """Return the reads of a check."""
        self._check_usable()
        return PostgresInspection(self._address, self._reader, self.times)

    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        self._check_usable()
        return self._reader.rows(name, parameters)

    def close(self) -> None:
        """Close every connection and end the listener."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._listener.close()
        self._lending.close()
        self._reader.close()
        self._renewer.close()
        with self._writing:
            self._flush.close()

    def _write(self, batch: Sequence[Bundle], *, again: bool) -> list[Outcome | BaseException]:
        """Write a batch with the one connection that writes."""
        chains = held_chains(batch)
        with self._writing, self._lending.chain_locks.writing({chain.job_id for chain in chains}):
            self._check_usable()
            return self._flush.write(batch, chains, again=again)

    def _take_turn(self, request: RunTx) -> Outcome | BaseException:
        """Lend a transaction to the thread that waits for its turn."""

        def body(loan: Transaction) -> RecordStep:
            step = request.turn.lend(loan, request.ms_max / 1000)
            if step is None:
                raise too_long(request.ms_max)
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
