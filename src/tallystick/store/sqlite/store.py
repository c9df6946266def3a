"""The store on one SQLite file: one connection that writes, for the committer, and one that reads."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from tallystick import crash
from tallystick.clock import Clock
from tallystick.core.limits import TRANSACTION_MS_MAX
from tallystick.errors import BadInput, Misuse, StoreMisused
from tallystick.store.api import (
    Bundle,
    ExpiredAttempt,
    Fence,
    JobRow,
    Outcome,
    Overdue,
    OwedHook,
    call_off,
)
from tallystick.store.borrowing import Borrowers, limited, waits_for_itself
from tallystick.store.sql.effects import EffectReads
from tallystick.store.sql.protocols import ProtocolReads
from tallystick.store.sql.queueing.rows import QueueReads
from tallystick.store.sql.reads import Reads
from tallystick.store.sql.schedules import ScheduleReads
from tallystick.store.sql.watching import WatchReads
from tallystick.store.sqlite.file.backup import back_up
from tallystick.store.sqlite.file.clock import FileClock
from tallystick.store.sqlite.file.connection import (
    WRITERS_STATEMENTS,
    begin_to_write,
    call_original,
    connect,
    disconnect,
    forget_statistics,
    in_doubt,
    is_copy,
    migrate,
    translated,
)
from tallystick.store.sqlite.file.files import Files
from tallystick.store.sqlite.file.turnstile import BUSY_MS, Turnstile
from tallystick.store.sqlite.file.write_notifier import WriteNotifier
from tallystick.store.sqlite.flush import SqliteFlush
from tallystick.store.sqlite.inspection import Read, SqliteInspection
from tallystick.store.sqlite.statements import sql
from tallystick.store.sqlite.user_transactions.transaction import SqliteTransaction
from tallystick.store.sqlite.writer import SqliteBatch

# The log is moved into the database when it has so many pages, or before if that costs little: to write over
# a short log takes a disk half as long as to write at the end of a growing one.
CHECKPOINT_PAGES = 4_000
_WORTHWHILE_PAGES = 256
T = TypeVar("T")
# How many times as long as the last move took goes by before the next of a short log.
_MOVES_APART = 20

LENT = crash.declare("sqlite.transaction.lent", "a user's own transaction is open and empty")
BEFORE_LOAN_ENDS = crash.declare("sqlite.transaction.before", "a user's own transaction is about to commit")
AFTER_LOAN_ENDED = crash.declare("sqlite.transaction.after", "a user's own transaction is durable")
BEFORE_CHECKPOINT = crash.declare("sqlite.checkpoint.before", "the log is about to move into the database")
AFTER_CHECKPOINT = crash.declare("sqlite.checkpoint.after", "the log has moved into the database")


class SqliteStore(Reads, ProtocolReads, ScheduleReads, QueueReads, WatchReads, EffectReads):
    """Bundles on one SQLite file."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        create: bool = True,
        synchronous: str = "FULL",
        busy_ms: int = BUSY_MS,
    ) -> None:
        """Open the file and bring its schema up to date; wait `busy_ms` at most for a turn to write."""
        self.path = path.absolute()
        self._busy_ms = busy_ms
        self._clock = clock
        self._time = FileClock(clock)
        self._pid = os.getpid()
        self._synchronous = synchronous
        self._writer = connect(
            self.path, create=create, synchronous=synchronous, statements=WRITERS_STATEMENTS
        )
        try:
            self._turnstile = Turnstile(self.path, busy_ms=busy_ms)
            try:
                if migrate(self._writer, self.path, self._turnstile):
                    with self._turnstile:
                        self._time.begin(self._writer)
                self._files = Files(self.path)
                self._reader = connect(self.path, create=False, synchronous=synchronous)
            except BaseException:
                self._turnstile.close()
                raise
        except BaseException:
            disconnect(self._writer)
            raise
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._borrowers = Borrowers()
        self._pages = 0
        self._next_move_at = 0.0
        self._news = itertools.count(-2, -1)
        self._notifier = WriteNotifier(self.path, clock)
        self._wrote = self._has_written = False
        self._flush = SqliteFlush(self._writer, self.path, self._time)
        self._writer.set_wal_hook(self._on_wal)
        self._closed = False

    @property
    def url(self) -> str:
        """Return the address of the file."""
        return f"sqlite:///{self.path}"

    @property
    def is_copy(self) -> bool:
        """Tell whether this is a backup that was not opened before."""
        with self._reading:
            return is_copy(self._reader)

    def call_original(self) -> None:
        """Let a backup be a file like any other: what was unfinished in it is held."""
        with self._writing, self._turnstile:
            call_original(self._writer)

    def back_up(self, target: Path) -> int:
        """Copy the file as of one instant, while others write to it, and return the size of the copy."""
        source = connect(self.path, create=False, synchronous=self._synchronous)
        try:
            return back_up(source, target)
        finally:
            disconnect(source)

    def apply(self, batch: Sequence[Bundle], *, again: bool = False) -> list[Outcome | BaseException]:  # noqa: ARG002 (as every store)
        """Make a batch durable with one fsync and return one outcome per bundle."""
        try:
            self._check_usable()
            self.check_may_wait()
            with self._writing:
                self._check_open()
                with self._turnstile:
                    # It may have been a long wait: is there still something to write to?
                    self._files.check_log(self._writer)
                    if not self._has_written:
                        forget_statistics(self._writer)
                        self._has_written = True
                    outcomes = self._flush.write(batch)
        except BaseException as error:
            call_off(batch)
            if isinstance(error, apsw.Error):
                raise translated(error, self.path) from error
            raise
        if self._wrote:
            self._wrote = False
            self._notifier.ring()
        return outcomes

    @contextmanager
    def transaction(self, ms_max: int = TRANSACTION_MS_MAX) -> Iterator[SqliteTransaction]:
        """Lend a connection of its own to the calling thread: the user's rows and ours in one transaction.

        When its time is up it is rolled back and others may write, whatever that thread does.
        """
        self._check_usable()
        self._files.check()
        with self._borrowers.borrowing() as thread:
            connection = connect(self.path, create=False, synchronous=self._synchronous)
            turnstile = Turnstile(self.path, busy_ms=self._busy_ms)
            try:
                with turnstile:
                    self._files.check()
                    yield from self._lend(connection, turnstile, thread, ms_max)
                self._notifier.ring()
            except apsw.Error as error:
                raise translated(error, self.path) from error
            finally:
                disconnect(connection)
                turnstile.close()

    def join(self, transaction: object) -> SqliteTransaction:
        """Return a transaction on loan, that our bundles can be part of; refuse that of another file."""
        if not isinstance(transaction, SqliteTransaction):
            raise BadInput(
                f"within= takes what app.transaction() or a tx step gives, not {type(transaction).__name__}"
            )
        if not self.path.samefile(transaction.file):
            raise BadInput(
                f"within= is a transaction on {transaction.file}, and this Tally keeps its books in "
                f"{self.path}; use a Tally on that file"
            )
        return transaction

    def check_may_wait(self) -> None:
        """Refuse to wait, in a thread that holds a transaction, for the writer that it holds."""
        if threading.get_ident() in self._borrowers.threads:
            raise waits_for_itself()

    @contextmanager
    def connect(self) -> Iterator[SqliteTransaction]:
        """Lend a connection of its own to the calling thread, for reading."""
        self._check_usable()
        self._files.check()
        connection = connect(self.path, create=False, synchronous=self._synchronous)
        connection.execute("PRAGMA query_only = ON")
        loan = SqliteTransaction(connection, _refuse_to_write, borrower=threading.get_ident(), reading=True)
        try:
            self._files.check()
            yield loan
        except apsw.ReadOnlyError as error:
            raise Misuse("app.connect() is for reading; write in app.transaction()") from error
        except apsw.Error as error:
            raise translated(error, self.path) from error
        finally:
            loan.take_back()
            disconnect(connection)

    def _lend(
        self, connection: apsw.Connection, turnstile: Turnstile, thread: int, ms_max: int
    ) -> Iterator[SqliteTransaction]:
        batches: list[SqliteBatch] = []

        def apply(bundle: Bundle) -> Outcome:
            batches.append(SqliteBatch(connection, self._time.now(connection, on_loan=True)))
            return batches[-1].alone(bundle)

        forget_statistics(connection)
        begin_to_write(connection, self.path)
        crash.point(LENT)
        loan = SqliteTransaction(connection, apply, borrower=thread)

        def time_is_up() -> None:
            if loan.revoke(ms_max):
                turnstile.leave()

        try:
            with limited(ms_max, time_is_up):
                yield loan
                loan.finish()
            crash.point(BEFORE_LOAN_ENDS)
            try:
                connection.execute("COMMIT")
            except apsw.IOError as error:
                raise in_doubt(error, self.path) from error
            crash.point(AFTER_LOAN_ENDED)
        except BaseException:
            for batch in reversed(batches):
                batch.rewind()
            raise
        finally:
            loan.take_back()
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Move the log into the database when it has grown; called between flushes, never inside one."""
        begun = self._clock.monotonic()
        if self._pages >= (_WORTHWHILE_PAGES if begun >= self._next_move_at else CHECKPOINT_PAGES):
            with self._writing:
                self._check_usable()
                if not self._files.are_ours():
                    return  # the next writer hears of it
                crash.point(BEFORE_CHECKPOINT)
                try:
                    self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                except (apsw.FullError, apsw.IOError, apsw.BusyError):
                    # The log keeps everything, and the next writer hears what is wrong with the disk.
                    return
                crash.point(AFTER_CHECKPOINT)
                self._pages = 0
                ended = self._clock.monotonic()
                self._next_move_at = ended + _MOVES_APART * (ended - begun)

    def pulse(self) -> int:
        """Return a number that is another one whenever any process, this one included, has written.

        That the files are not ours any more is news every time: the next reader hears of it.
        """
        version = int(self._read_one("PRAGMA data_version"))
        return version if self._files.are_ours() else next(self._news)

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:
        """Call `heard` soon after another process has written, where that can be had."""
        return self._notifier.listen(heard, name)

    def next_due(self, queues: Sequence[str], after: int = 0) -> int | None:
        """Return when the next job of these queues becomes due after this instant."""
        lag = self._time.lag()
        # Not after now: the wall clock may have been set back since it was asked for.
        after = min(after, self._clock.wall_ms()) + lag
        due = [
            self._read_one(sql("next_due"), (queue, priority, after))
            for queue in queues
            for (priority,) in self._read(sql("levels"), (queue,))
        ]
        return min((at - lag for at in due if at is not None), default=None)

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out by this machine's boot clock, or is of an earlier boot."""
        rows = self._read(sql("expired"), (self._clock.epoch(), self._clock.boot_ms(), limit))
        return [ExpiredAttempt(Fence._make(fence), unit) for *fence, unit in rows]

    def overdue(self, limit: int) -> list[Overdue]:
        """Return jobs whose grace or deadline is over by the clock of the file, the longest over first."""
        now = self.now()
        return [Overdue(job_id, late=bool(late)) for job_id, late in self._read(sql("overdue"), (now, limit))]

    def next_end(self) -> int | None:
        """Return when the next grace or deadline is over."""
        at = self._read_one(sql("next_end"), ())
        return None if at is None else at - self._time.lag()

    def owed_hooks(self, handlers: Sequence[str], limit: int) -> list[OwedHook]:
        """Return jobs of these workflows to which a hook is owed now."""
        return self._owed(handlers, self.now(), limit)

    def now(self) -> int:
        """Return the time by the clock of the file."""
        return self._clock.wall_ms() + self._time.lag()

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        found = super().finished(job_ids)
        self._files.check()  # a caller waits, and would for ever
        return found

    def inspect(self) -> SqliteInspection:
        """Return the reads of a check."""
        return SqliteInspection(self.path, self._read, self._clock, self._read_at_once)

    def close(self) -> None:
        """Close both connections and the lock files."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._notifier.close()
        with self._writing, self._reading:
            self._files.let_go(self._reader, self._writer)
            disconnect(self._reader)
            disconnect(self._writer)
            self._turnstile.close()

    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return self._read(sql(name), parameters)

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]  # rows of any shape
        self._check_usable()
        with self._reading:
            return self._select(statement, parameters)

    def _read_at_once(self, ask: Callable[[Read], T]) -> T:
        """Let several reads see one instant; other threads of this process read afterwards."""
        self._check_usable()
        with self._reading:
            self._select("BEGIN", ())
            try:
                return ask(self._select)
            finally:
                self._select("COMMIT", ())

    def _select(self, statement: str, parameters: Sequence[object]) -> list[tuple]:  # type: ignore[type-arg]  # as above
        try:
            return list(self._reader.execute(statement, parameters))
        except apsw.Error as error:
            raise translated(error, self.path) from error
        except (TypeError, ValueError, OverflowError) as error:
            # As a bundle is refused: what cannot be stored cannot be looked for either.
            raise BadInput(f"a value cannot be looked for: {error}") from error

    def _read_one(self, statement: str, parameters: Sequence[object] = ()) -> Any:  # noqa: ANN401 (one column)
        return self._read(statement, parameters)[0][0]

    def _on_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        self._wrote = True
        return apsw.SQLITE_OK

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreMisused("this store was opened before a fork; open the Tally in the child instead")
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreMisused("this store is closed")


def _refuse_to_write(_bundle: Bundle) -> Outcome:
    raise Misuse("app.connect() is for reading; submit with within= in app.transaction()")
