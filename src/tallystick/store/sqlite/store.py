"""The store on one SQLite file: one connection that writes, for the committer, and one that reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from tallystick import crash
from tallystick.clock import Clock
from tallystick.core.chain import step_payload
from tallystick.errors import StoreGone, StoreMisused
from tallystick.store.api import Bundle, Event, ExpiredAttempt, Fence, JobRow, Outcome, RunTx
from tallystick.store.sqlite.claims import newest
from tallystick.store.sqlite.connection import connect, migrate, translated
from tallystick.store.sqlite.statements import sql
from tallystick.store.sqlite.transaction import SqliteTransaction
from tallystick.store.sqlite.turnstile import Turnstile
from tallystick.store.sqlite.writer import Batch

CHECKPOINT_PAGES = 4_000

BEGUN = crash.declare("sqlite.begin.after", "the lock is held and a transaction is open")
BEFORE_COMMIT = crash.declare("sqlite.commit.before", "a batch is written and nothing of it is durable")
AFTER_COMMIT = crash.declare("sqlite.commit.after", "a batch is durable and nobody has been told")


class SqliteStore:
    """Bundles on one SQLite file."""

    def __init__(self, path: Path, clock: Clock, *, create: bool = True, synchronous: str = "FULL") -> None:
        """Open the file and bring its schema up to date."""
        self.path = path.absolute()
        self._clock = clock
        self._pid = os.getpid()
        self._synchronous = synchronous
        self._writer = connect(self.path, create=create, synchronous=synchronous)
        self._turnstile = Turnstile(self.path)
        migrate(self._writer, self.path, self._turnstile)
        self._reader = connect(self.path, create=False, synchronous=synchronous)
        self._identity = _identity(self.path)
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._data_version = -1
        self._pages = 0
        self._writer.set_wal_hook(self._on_wal)
        self._closed = False

    @property
    def url(self) -> str:
        """Return the address of the file."""
        return f"sqlite:///{self.path}"

    def apply(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Make a batch durable with one fsync and return one outcome a bundle."""
        self._check_usable()
        with self._writing, self._turnstile:
            self._check_file()
            writing: Batch | None = None
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                crash.point(BEGUN)
                writing = Batch(self._writer, self._clock)
                outcomes = writing.write(batch)
                crash.point(BEFORE_COMMIT)
                self._writer.execute("COMMIT")
                crash.point(AFTER_COMMIT)
            except BaseException as error:
                self._roll_back(batch)
                if writing is not None:
                    writing.rewind()
                if isinstance(error, apsw.Error):
                    raise translated(error, self.path) from error
                raise
        return outcomes

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """Lend a connection of its own to the calling thread: the user's rows and ours in one transaction."""
        self._check_usable()
        connection = connect(self.path, create=False, synchronous=self._synchronous)
        turnstile = Turnstile(self.path)
        try:
            with turnstile:
                self._check_file()
                connection.execute("BEGIN IMMEDIATE")
                loan = SqliteTransaction(
                    connection,
                    lambda bundle: Batch(connection, self._clock).alone(bundle),
                    borrower=threading.get_ident(),
                )
                try:
                    yield loan
                    connection.execute("COMMIT")
                finally:
                    loan.take_back()
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise translated(error, self.path) from error
        finally:
            connection.close()
            turnstile.close()

    def checkpoint(self) -> None:
        """Move the log into the database when it has grown; called between flushes, never inside one."""
        if self._pages >= CHECKPOINT_PAGES:
            with self._writing:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._pages = 0

    def changed(self) -> bool:
        """Tell whether anybody, this process included, has written since the last call."""
        version = self._read_one("PRAGMA data_version")
        changed = bool(version != self._data_version)
        self._data_version = version
        return changed

    def next_due(self, queues: Sequence[str]) -> int | None:
        """Return when the next job of these queues becomes due."""
        due = [
            self._read_one(sql("next_due"), (queue, priority))
            for queue in queues
            for (priority,) in self._read(sql("levels"), (queue,))
        ]
        return min((at for at in due if at is not None), default=None)

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out by this machine's boot clock, or is of an earlier boot."""
        found = []
        for job_id, attempt, lease_id, status, options, dimension in self._read(
            sql("expired"), (self._clock.epoch(), self._clock.boot_ms(), limit)
        ):
            with self._reading:
                charged, chain = newest(self._reader.cursor(), job_id, dimension)
            found.append(ExpiredAttempt(Fence(job_id, attempt, lease_id), status, charged, options, chain))
        return found

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        rows = self._read(sql("job"), (job_id,))
        return JobRow(*rows[0]) if rows else None

    def jobs(
        self, *, tenant_id: str, states: Sequence[str], handler: str | None, after: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs, newest first."""
        wanted = msgspec.json.encode(list(states)).decode()
        return [JobRow(*row) for row in self._read(sql("jobs"), (tenant_id, wanted, handler, after, limit))]

    def finished(self, job_ids: Sequence[str]) -> list[JobRow]:
        """Return those of these jobs that have ended."""
        wanted = msgspec.json.encode(list(job_ids)).decode()
        return [JobRow(*row) for row in self._read(sql("finished"), (wanted,))]

    def history(self, job_id: str) -> list[Event]:
        """Return every event of a job in order, inline steps included."""
        events = [Event(*row) for row in self._read(sql("facts"), (job_id,))]
        for n, kind, at, attempt, *payload, prev_hash, event_hash in self._read(sql("step_facts"), (job_id,)):
            events.append(Event(job_id, n, kind, at, attempt, step_payload(*payload), prev_hash, event_hash))
        return sorted(events, key=lambda event: event.n)

    def counts(self) -> dict[str, int]:
        """Return how many jobs stand in each state."""
        return dict(self._read(sql("counts")))

    def close(self) -> None:
        """Close both connections and the lock files."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()
            self._turnstile.close()

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]
        self._check_usable()
        with self._reading:
            try:
                return list(self._reader.execute(statement, parameters))
            except apsw.Error as error:
                raise translated(error, self.path) from error

    def _read_one(self, statement: str, parameters: Sequence[object] = ()) -> Any:  # noqa: ANN401 (a column)
        return self._read(statement, parameters)[0][0]

    def _roll_back(self, batch: Sequence[Bundle]) -> None:
        """Undo the whole flush and let every thread go that still waits for its turn in it."""
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        for bundle in batch:
            for primitive in bundle:
                if isinstance(primitive, RunTx):
                    primitive.turn.call_off()

    def _on_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreMisused("this store was opened before a fork; open the Tally in the child instead")
        if self._closed:
            raise StoreMisused("this store is closed")

    def _check_file(self) -> None:
        """Refuse to write when the file at our path is no longer ours: everything after would be lost."""
        if _identity(self.path) != self._identity:
            raise StoreGone(
                f"{self.path} was moved, deleted or replaced while it was open", path=str(self.path)
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
