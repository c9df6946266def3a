"""A transaction on loan as other libraries know it: a psycopg connection, or an SQLAlchemy session on it.

Both are real ones, on the connection that also records the step. Only its bounds are not theirs: commit and
rollback are refused while the user's function runs, and a savepoint is as good as ever.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from tallystick.store.borrowing import refuse_bounds
from tallystick.store.postgres.server.connection import AnsweringConnection
from tallystick.store.postgres.user_transactions.transaction import PostgresTransaction

if TYPE_CHECKING:
    from sqlalchemy import Engine

_BOUNDS = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(abort|begin|commit|end|prepare\s+transaction|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b)|start)\b",
    re.IGNORECASE | re.DOTALL,
)


class _BoundedCursor(psycopg.Cursor[Any]):
    """A cursor that refuses statements which begin or end the transaction."""

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> _BoundedCursor:  # noqa: ANN401 (as psycopg has it)
        """Run a statement that leaves the transaction open."""
        text = query if isinstance(query, str | bytes) else query.as_bytes(self.connection)
        refuse_bounds(_BOUNDS, text.decode() if isinstance(text, bytes) else text)
        super().execute(query, *args, **kwargs)
        return self


class LibraryTypes:
    """How transactions of one store are lent to functions that want them as something else."""

    def __init__(self) -> None:
        """Import nothing yet."""
        self._lent = threading.local()
        self._making = threading.Lock()
        self._engine: Engine | None = None

    @contextmanager
    def lend(self, loan: PostgresTransaction, kind: type) -> Iterator[object]:
        """Give a transaction as a connection or a session, until the user's function has ended."""
        connection = loan.connection
        assert isinstance(connection, AnsweringConnection)
        connection.cursor_factory = _BoundedCursor
        try:
            if issubclass(kind, psycopg.Connection):
                connection.bounded = True
                yield connection
            else:
                yield from self._session(connection, kind)
        finally:
            connection.bounded = False
            connection.cursor_factory = psycopg.RawCursor

    def _session(self, connection: AnsweringConnection, kind: Any) -> Iterator[object]:  # noqa: ANN401 (a class of SQLAlchemy)
        self._lent.connection = connection
        with self._sqlalchemy().connect() as bound, kind(bind=bound) as session:
            connection.bounded = True
            try:
                yield session
                session.flush()
            finally:
                connection.bounded = False

    def _sqlalchemy(self) -> Engine:
        """Return the engine whose one connection is that which this thread was lent."""
        with self._making:
            if self._engine is None:
                # Imported here: a program without such functions need not have it.
                from tallystick.store.postgres.user_transactions.lent_dialect import (  # noqa: PLC0415 (as said above)
                    make_engine,
                )

                self._engine = make_engine(lambda: self._lent.connection)
            return self._engine
