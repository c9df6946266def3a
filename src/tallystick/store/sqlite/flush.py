"""One flush: a batch in one transaction, and the cleanup after a COMMIT that the disk refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from tallystick import crash
from tallystick.core.chain import DOUBTFUL
from tallystick.store.api import Bundle, Outcome
from tallystick.store.chains import as_known, held_chains
from tallystick.store.sql.queueing.keyless import Walks
from tallystick.store.sqlite.file.clock import FileClock
from tallystick.store.sqlite.file.connection import begin_to_write, in_doubt
from tallystick.store.sqlite.looking import chain_end
from tallystick.store.sqlite.user_transactions.tx_loans import Loans, TransactionLost
from tallystick.store.sqlite.writer import SqliteBatch

BEGUN = crash.declare("sqlite.begin.after", "the lock is held and a transaction is open")
BEFORE_COMMIT = crash.declare("sqlite.commit.before", "a batch is written and nothing of it is durable")
AFTER_COMMIT = crash.declare("sqlite.commit.after", "a batch is durable and no caller has its outcome")


class CommitFailed(Exception):
    """A COMMIT ended in an I/O error: what it wrote may be in the log, whole or in part."""

    def __init__(
        self, error: apsw.IOError, writing: SqliteBatch, outcomes: list[Outcome | BaseException]
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.writing = writing
        self.outcomes = outcomes


class SqliteFlush:
    """How batches are written with the one connection that writes, whose turn it is."""

    def __init__(self, connection: apsw.Connection, path: Path, time: FileClock) -> None:
        """Remember what to write with."""
        self._connection = connection
        self._path = path
        self._time = time
        # Whether any chain may be doubtful: nothing is looked at before there was a reason to.
        self._doubts = False
        self._walks = Walks()

    def write(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Write a batch and return one outcome per bundle; write it once more if its COMMIT has failed.

        What the log holds then may come back when the file is recovered, or be written over by the next
        transaction. So the batch is written over itself; if that fails too, the outcome is unknown.
        """
        loans = Loans()
        try:
            return self._write(batch, loans)
        except CommitFailed as first:
            try:
                if self._is_there(first.writing):
                    return first.outcomes
                first.writing.rewind()
                return self._write(batch, loans)
            except (apsw.Error, CommitFailed) as second:
                doubted = second.writing if isinstance(second, CommitFailed) else first.writing
                doubted.places.doubt()
                self._doubts = True
                raise in_doubt(first.error, self._path) from first.error

    def _write(self, batch: Sequence[Bundle], loans: Loans) -> list[Outcome | BaseException]:
        """Write and commit, again if a user's statement has undone the whole."""
        while True:
            try:
                return self._write_once(batch, loans)
            except TransactionLost:
                continue

    def _write_once(self, batch: Sequence[Bundle], loans: Loans) -> list[Outcome | BaseException]:
        writing: SqliteBatch | None = None
        try:
            begin_to_write(self._connection, self._path)
            crash.point(BEGUN)
            writing = SqliteBatch(self._connection, self._time.now(self._connection), loans)
            writing.walks = self._walks
            outcomes = self._write_known(writing, batch) if self._doubts else writing.write(batch)
            crash.point(BEFORE_COMMIT)
            self._commit(writing, outcomes)
            self._time.wrote(self._connection)
            crash.point(AFTER_COMMIT)
        except CommitFailed:
            raise
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if writing is not None:
                writing.rewind()
            raise
        return outcomes

    def _write_known(self, writing: SqliteBatch, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Write what goes on from where its chains end, now that some of them may be doubtful."""
        ends = {
            chain: chain_end(writing.cursor, chain.job_id)
            for chain, fence in held_chains(batch).items()
            if chain.era is DOUBTFUL and writing.holds(fence)
        }
        known = as_known(batch, ends, None)
        written = iter(writing.write([bundle for bundle in known if isinstance(bundle, tuple)]))
        return [next(written) if isinstance(bundle, tuple) else bundle for bundle in known]

    def _commit(self, writing: SqliteBatch, outcomes: list[Outcome | BaseException]) -> None:
        try:
            self._connection.execute("COMMIT")
        except apsw.IOError as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise CommitFailed(error, writing, outcomes) from error

    def _is_there(self, writing: SqliteBatch) -> bool:
        """Tell whether the file has been recovered with this batch in it."""
        listed = [(job_id, n, head.hex()) for job_id, n, head in writing.places.written()]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            ((missing,),) = writing.rows("missing_places", (msgspec.json.encode(listed).decode(),))
            return bool(listed) and not missing
        finally:
            self._connection.execute("ROLLBACK")
