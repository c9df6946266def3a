"""Users' transactions: each on a connection of its own, under the fence of its attempt from first to last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from tallystick import crash
from tallystick.clock import SystemClock
from tallystick.core.chain import Chain, Era
from tallystick.errors import Misuse, OutcomeUnknown, StaleLease, StoreError
from tallystick.store.api import Bundle, Fence, Outcome, RecordStep, Transaction
from tallystick.store.borrowing import Borrowers, limited, too_long
from tallystick.store.chains import ChainLocks, forgotten
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.commit_outcome import Fate, fate
from tallystick.store.postgres.server.connection import (
    REFUSALS,
    AnsweringConnection,
    Eras,
    Lost,
    discard,
    is_lost,
    refusal,
    retrying,
    translated,
)
from tallystick.store.postgres.server.migrations import refuse_newer
from tallystick.store.postgres.server.pool import Pool
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.user_transactions.foreign import ForeignTransaction, foreign_connection
from tallystick.store.postgres.user_transactions.home import Home
from tallystick.store.postgres.user_transactions.lent import Lent
from tallystick.store.postgres.user_transactions.transaction import PostgresTransaction
from tallystick.store.postgres.writing import Times
from tallystick.store.refusals import stale

TX_TRIES_MAX = 5

# What `insist_on_step` says when the fence was gone.
NOT_WRITTEN = "TSF01"

BEFORE_TX = crash.declare("postgres.tx.before", "a user's transaction is about to begin")
BEFORE_TX_COMMIT = crash.declare(
    "postgres.tx_commit.before", "a user's rows and its step are written, not durable"
)
AFTER_TX_COMMIT = crash.declare(
    "postgres.tx_commit.after", "a user's rows and its step are durable, without an answer"
)

# A transaction that loses against another one runs again; all its rows were undone.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


class Lending:
    """Which thread works on which connection."""

    def __init__(
        self, address: Address, times: Callable[[], Times], note: Callable[[], None], eras: Eras, home: Home
    ) -> None:
        """Open nothing yet; `note` is called when something became durable that may be work."""
        self._eras = eras
        self._home = home
        self.chain_locks = ChainLocks()
        self._address = address
        self._times = times
        self._note = note
        self._pool = Pool(address, eras)
        self.borrowers = Borrowers()

    def close(self) -> None:
        """Close what is idle."""
        self._pool.close()

    def join(self, thing: object) -> Transaction:
        """Return a transaction as ours: one that was lent here, or that the user began."""
        if isinstance(thing, PostgresTransaction):
            if thing.home is not self._home:
                self._home.check_loan(thing.connection, thing.home)
            return thing
        connection = foreign_connection(thing)
        joined = ForeignTransaction(connection, self._address, self._times)
        self._home.check(connection)
        return joined

    def run_tx(
        self,
        fence: Fence,
        body: Callable[[Transaction], RecordStep],
        ms_max: int,
        lease_ms: int,
        *,
        tries_max: int = TX_TRIES_MAX,
    ) -> RecordStep:
        """Run a body with a transaction and record its step, all under the fence.

        A deadlock, a serialization failure or a lost connection undoes everything, and the body runs again.
        """
        with self.chain_locks.writing({fence.job_id}):
            step = retrying(lambda: self._run_once(fence, body, ms_max, lease_ms), tries_max, self._give_up)
        assert isinstance(step, RecordStep)
        return step

    @contextmanager
    def transaction(self, ms_max: int) -> Iterator[PostgresTransaction]:
        """Lend a connection to the calling thread until its block ends, or its time is up."""
        try:
            with (
                self.borrowers.borrowing() as thread,
                self._pool.connection(self._begin) as (connection, _begun),
            ):
                yield from self._lend(connection, thread, ms_max)
        except Lost as lost:
            raise self._give_up(lost) from lost

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """Lend a connection that cannot write; every statement sees what is durable when it begins."""
        thread = threading.get_ident()
        try:
            with self._pool.connection(self._begin_to_read) as (connection, _begun):
                loan = PostgresTransaction(self._home, connection, _refuse_to_write, borrower=thread)
                try:
                    yield loan
                except errors.ReadOnlySqlTransaction as error:
                    raise Misuse("app.connect() is for reading; write in app.transaction()") from error
                finally:
                    loan.take_back()
                    Lent(connection, self._address, self._times).undo()
                    if loan.tainted:
                        discard(connection)
        except Lost as lost:
            raise self._give_up(lost) from lost

    def _lend(
        self, connection: AnsweringConnection, thread: int, ms_max: int
    ) -> Iterator[PostgresTransaction]:
        lent = Lent(connection, self._address, self._times)
        loan = PostgresTransaction(self._home, connection, lent.apply, borrower=thread)
        try:
            try:
                with limited(ms_max, partial(loan.revoke, ms_max)):
                    yield loan
                    loan.finish()
            finally:
                loan.take_back()
            self._number(lent)
            self._commit(lent)
        except BaseException as error:
            self._undone(lent, error)
            raise
        finally:
            if loan.tainted:
                discard(connection)

    def _number(self, lent: Lent) -> None:
        """Ask for the number of a transaction, by which its fate can be asked for."""
        try:
            ((lent.xid, lent.server),) = lent.connection.execute(sql("own_xid")).fetchall()
        except psycopg.Error as error:
            raise self._loss(lent.connection, error) from error

    def _run_once(
        self, fence: Fence, body: Callable[[Transaction], RecordStep], ms_max: int, lease_ms: int
    ) -> RecordStep:
        crash.point(BEFORE_TX)

        def begin(connection: AnsweringConnection) -> tuple[str, str, int] | None:
            return self._hold_fence(connection, fence, ms_max)

        with self._pool.connection(begin) as (connection, number):
            lent = Lent(connection, self._address, self._times)
            loan = PostgresTransaction(self._home, connection, lent.apply)
            try:
                if number is None:
                    raise stale(fence)
                lent.xid, lent.server, version = number
                refuse_newer(version, self._address)
                era = self._era_of(lent.server)
                step = _run_body(loan, connection, body, ms_max)
                if loan.tainted:
                    self._insist_on_transaction(lent)
                self._record_and_commit(lent, step, lease_ms, era)
            except BaseException as error:
                self._undone(lent, error)
                if isinstance(error, StaleLease):
                    lent.keep_report(fence)
                raise
            finally:
                if loan.tainted:
                    discard(connection)
            return step

    def _insist_on_transaction(self, lent: Lent) -> None:
        """Insist that a function which had the connection itself left its transaction open."""
        xid = lent.xid
        self._number(lent)
        if lent.xid != xid:
            raise Misuse("the tx has ended its transaction by itself; what it wrote before is durable")

    def _begin_to_read(self, connection: AnsweringConnection) -> None:
        self._begin(connection, b"BEGIN READ ONLY")

    def _begin(self, connection: AnsweringConnection, begin: bytes = b"BEGIN") -> None:
        """Begin a transaction in which the user's names mean what they mean to the user."""
        try:
            with connection.pipeline():
                connection.execute(begin)
                connection.execute(sql("use_path"), (self._users_path(connection),))
        except psycopg.Error as error:
            raise self._loss(connection, error) from error

    def _era_of(self, server: str) -> Era:
        """Return the era of this server: a new one if another server has answered so far."""
        self._eras.answered(server)
        return self._eras.now

    def _hold_fence(
        self, connection: AnsweringConnection, fence: Fence, ms_max: int
    ) -> tuple[str, str, int] | None:
        """Begin, take hold of the attempt row, and leave the rest of the transaction to the user's names.

        Return the number of the transaction and its server, by which its fate can be asked for, and
        the version of the schema. None: the fence is gone.
        """
        times = self._times()
        lease = (fence.job_id, str(fence.attempt), fence.lease_id, times.epoch, times.lease)
        try:
            with connection.pipeline():
                connection.execute(b"BEGIN")
                connection.execute(sql("use_path"), (self._address.path,))
                held = connection.execute(sql("live_attempt"), lease)
                number = connection.execute(sql("own_xid_and_schema"))
                connection.execute(sql("loan_settings"), (self._users_path(connection), str(ms_max)))
            found = held.fetchall()
            (numbered,) = number.fetchall()
        except psycopg.Error as error:
            raise self._loss(connection, error) from error
        return numbered if found else None

    def _record_and_commit(self, lent: Lent, step: RecordStep, lease_ms: int, era: Era) -> None:
        """Write the step under the fence, renew the lease if need be, and commit: one trip to the server.

        If the fence is gone the transaction fails before its COMMIT, so that nothing of the user's stays.
        """
        connection, times = lent.connection, self._times()
        if step.chain.era is not era:
            self._insist_on_end(connection, step.chain, era)
        batch = lent.batch()
        fence = step.fence
        own = (fence.job_id, str(fence.attempt), fence.lease_id, times.lease, str(lease_ms))
        insisted: psycopg.Cursor[Any] | None = None
        try:
            with connection.pipeline():
                connection.execute(sql("use_path"), (self._address.path,))
                batch.steps([step])
                place = (fence.job_id, str(step.dimension), step.name, str(step.occurrence), step.chain.head)
                insisted = connection.execute(sql("insist_on_step"), place)
                if lease_ms:
                    connection.execute(sql("renew_own_lease"), own)
                crash.point(BEFORE_TX_COMMIT)
                if lent.wakes:
                    connection.execute(sql("notify"), (self._address.channel,))
                connection.execute(b"COMMIT")
        except psycopg.Error as error:
            if error.sqlstate == NOT_WRITTEN:
                raise stale(fence) from error
            if isinstance(error, REFUSALS):
                if insisted is not None and insisted.pgresult is not None:
                    raise  # our step was written: COMMIT has met a constraint of the user's own tables
                error.add_note("insert_steps")
                raise refusal(error) from error
            self._ask_fate(lent, error)
        self._committed(lent)

    def _insist_on_end(self, connection: AnsweringConnection, chain: Chain, era: Era) -> None:
        """Insist that a chain which was last seen in another era ends as it did; its attempt is held."""
        try:
            with connection.pipeline():
                connection.execute(sql("use_path"), (self._address.path,))
                head = connection.execute(sql("chain_head"), (chain.job_id,))
            if head.fetchall() != [(chain.n, chain.head)]:
                raise forgotten(chain.job_id)
        except psycopg.Error as error:
            raise self._loss(connection, error) from error
        chain.era = era

    def _ask_fate(self, lent: Lent, error: psycopg.Error) -> None:
        """Return if a COMMIT that failed is durable all the same; else raise what that means."""
        connection = lent.connection
        if not is_lost(connection, error):
            raise self._loss(connection, error) from error
        # Out of the way, so that the server ends what it may still be doing for it.
        discard(connection)
        self._eras.lost()
        if fate(self._address, lent.xid, lent.server, lent.written()) is Fate.ABORTED:
            raise Lost(error) from error

    def _undone(self, lent: Lent, error: BaseException) -> None:
        """Roll back, or keep in mind that it is unknown whether that happened."""
        if isinstance(error, OutcomeUnknown):
            lent.doubt()
        lent.undo()

    def _commit(self, lent: Lent) -> None:
        connection = lent.connection
        crash.point(BEFORE_TX_COMMIT)
        try:
            with connection.pipeline():
                if lent.wakes:
                    connection.execute(sql("notify"), (self._address.channel,))
                connection.execute(b"COMMIT")
        except psycopg.Error as error:
            self._ask_fate(lent, error)
        self._committed(lent)

    def _committed(self, lent: Lent) -> None:
        crash.point(AFTER_TX_COMMIT)
        if lent.wakes:
            self._note()

    def _users_path(self, connection: AnsweringConnection) -> str:
        """Return the user's own search path; our tables can be read by name unless it hides them."""
        path = connection.facts.search_path.strip()
        return f"{path}, {self._address.schema}" if path else self._address.schema

    def _loss(self, connection: AnsweringConnection, error: psycopg.Error) -> BaseException:
        lost = is_lost(connection, error)
        if lost:
            self._eras.lost()
        if lost or isinstance(error, _AGAIN):
            return Lost(error)
        return translated(error, self._address)

    def _give_up(self, lost: Lost) -> BaseException:
        error = lost.error
        # Cancelled in time whenever it ran: by a limit that the body itself sets, so the body failed by it.
        if isinstance(error, StoreError | errors.QueryCanceled):
            return error
        return translated(error, self._address)


def _refuse_to_write(_bundle: Bundle) -> Outcome:
    raise Misuse("app.connect() is for reading; submit with within= in app.transaction()")


def _run_body(
    loan: PostgresTransaction,
    connection: AnsweringConnection,
    body: Callable[[Transaction], RecordStep],
    ms_max: int,
) -> RecordStep:
    """Run the body and judge what became of its transaction."""
    clock = SystemClock()
    until = clock.monotonic() + ms_max / 1000
    try:
        step = body(loan)
    except Exception:
        loan.take_back()
        _check(loan, connection, ms_max, over=clock.monotonic() >= until)
        raise
    finally:
        loan.take_back()
    _check(loan, connection, ms_max, over=clock.monotonic() >= until)
    if connection.info.transaction_status == TransactionStatus.INERROR and loan.error is not None:
        raise loan.error  # swallowed by the body, but the transaction is lost all the same
    return step


def _check(loan: PostgresTransaction, connection: AnsweringConnection, ms_max: int, *, over: bool) -> None:
    """Raise what an error of the user's statements means, when it means more than itself.

    A statement that was cancelled, or a silence that was too long for the server, is the body's fault only if
    its time was over. Otherwise a person cancelled it, or the network was slow: it runs again.
    """
    error = loan.error
    ended = isinstance(error, errors.QueryCanceled | errors.IdleInTransactionSessionTimeout)
    if ended and over:
        raise too_long(ms_max) from error
    if error is not None and (ended or isinstance(error, _AGAIN) or is_lost(connection, error)):
        raise Lost(error)
