"""The transaction a user's function works in: a connection on loan.

It is valid in the thread it was lent to and until the function ends; afterwards, or from elsewhere, every
call is a clear error instead of a write that lands in another transaction. Placeholders are `:name`,
as on every store, and those of psycopg: `%s` and `%(name)s`. A statement that fails ends the transaction, as
PostgreSQL has it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tallystick.store.api import Bundle, Outcome
from tallystick.store.borrowing import Borrowing, refuse_bounds
from tallystick.store.postgres.user_transactions.home import Home
from tallystick.store.postgres.user_transactions.placeholders import as_psycopg

# Remarks, blanks and semicolons may stand before the word that counts.
_BOUNDS = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b",
    re.IGNORECASE | re.DOTALL,
)
# What outlives the transaction, so that the connection cannot be lent again: settings, prepared
# statements, cursors, whatever a block or a procedure does, temporary things and locks of the session.
# A word too many costs a connection, one too few the work of another transaction.
_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_LASTING = re.compile(
    rf"(?:{_BLANK}|;)*"
    r"(?:set|reset|listen|unlisten|prepare|deallocate|discard|load|declare|do|call)\b"
    rf"|.*\b(?:create|replace|into){_BLANK}+(?:(?:local|global){_BLANK}+)?temp(?:orary)?\b"
    r"|.*\b(?:pg_temp|set_config|pg_(?:try_)?advisory_lock(?:_shared)?)\b",
    re.IGNORECASE | re.DOTALL,
)
_CANCEL_SECONDS = 0.05

Parameters = Sequence[object] | Mapping[str, object]


class PostgresTransaction:
    """What `db` is inside a `tx` function and `app.transaction()`: your tables, our transaction."""

    def __init__(
        self,
        home: Home,
        connection: psycopg.Connection[Any],
        apply: Callable[[Bundle], Outcome],
        *,
        borrower: int | None = None,
    ) -> None:
        """Lend the connection to a thread: the calling one, or the first that uses it."""
        self.home = home
        self._connection = connection
        self._apply = apply
        self._loan = Borrowing(borrower)
        self._calling = threading.Lock()
        self.error: psycopg.Error | None = None
        self.tainted = False

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """Return the connection itself, for what needs one; leave its transaction alone."""
        with self._calling:
            self.tainted = True
            return self._lent("")

    def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        return self._run(sql, [parameters])

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        return self._run(sql, list(rows))

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles here: it becomes durable with the user's rows, or not at all."""
        with self._calling:
            self._lent("")
            try:
                return self._apply(bundle)
            except psycopg.Error as error:
                self.error = error
                self._loan.check_time()
                raise

    def finish(self) -> None:
        """End the loan, of which nothing runs any more; raise if its time was up before."""
        self.take_back()
        self._loan.check_time()

    def revoke(self, ms_max: int) -> None:
        """End the loan because its time is up, and undo everything, whatever the borrower does meanwhile."""
        if not self._loan.end(after_ms=ms_max):
            return
        self.take_back()
        with self._calling, suppress(psycopg.Error):
            if self.tainted:
                # The user's code would go on with the connection, and every statement be durable at once.
                self._connection.cancel_safe(timeout=5)
                self._connection.close()
            else:
                self._connection.execute("ROLLBACK")

    def take_back(self) -> None:
        """End the loan: cancel the statement that runs, wait for it to leave, refuse every later call."""
        self._loan.end()
        while not self._calling.acquire(timeout=_CANCEL_SECONDS):
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=5)
        self._calling.release()

    def _run(self, sql: str, rows: Sequence[Parameters]) -> list[tuple[Any, ...]]:
        with self._calling:
            connection = self._lent(sql)
            self.tainted = self.tainted or _LASTING.match(sql) is not None
            try:
                return [found for row in rows for found in _one_statement(connection, sql, row)]
            except psycopg.Error as error:
                self.error = error
                self._loan.check_time()
                raise
            finally:
                if connection.closed or connection.info.transaction_status == TransactionStatus.IDLE:
                    # Whatever ended it, a statement that came now would be durable at once.
                    self._loan.end()

    def _lent(self, sql: str) -> psycopg.Connection[Any]:
        self._loan.check()
        refuse_bounds(_BOUNDS, sql)
        return self._connection


def _one_statement(
    connection: psycopg.Connection[Any], sql: str, parameters: Parameters
) -> list[tuple[Any, ...]]:
    """Run a text that must be one statement: a COMMIT could hide behind a semicolon.

    The server sees to that when it prepares a text, or finds it in a pipeline.
    """
    cursor = psycopg.Cursor(connection, row_factory=tuple_row)
    if parameters and isinstance(parameters, Mapping):
        sql = as_psycopg(sql)
    if parameters or connection.prepare_threshold is not None:
        cursor.execute(sql, parameters or None, prepare=None if parameters else True)
    else:
        with connection.pipeline():
            cursor.execute(sql)
    return cursor.fetchall() if cursor.description else []
