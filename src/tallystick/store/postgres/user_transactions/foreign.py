"""A transaction that the user's own code began: a psycopg connection, or an SQLAlchemy session on one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tallystick.errors import BadInput
from tallystick.store.api import Bundle, Outcome
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import Talk
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.store.postgres.writing import Times


class ForeignTransaction:
    """Our bundles in the user's transaction; the user decides when it ends, and how."""

    def __init__(
        self, connection: psycopg.Connection[Any], address: Address, times: Callable[[], Times]
    ) -> None:
        """Borrow the connection for one call at a time."""
        check_carries(connection)
        self._connection = connection
        self._address = address
        self._times = times

    def execute(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        cursor = self._connection.cursor(row_factory=tuple_row).execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []

    def executemany(
        self, sql: str, rows: Iterable[Sequence[object] | Mapping[str, object]]
    ) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        return [found for row in rows for found in self.execute(sql, row)]

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles: durable when the user commits, gone when the user rolls back."""
        return apply_within(_ForeignTalk(self._connection), bundle, self._address, self._times())


def apply_within(talk: Talk, bundle: Bundle, address: Address, times: Times) -> Outcome:
    """Write one of our bundles in a transaction of the user, and wake others when that is durable."""
    batch = PostgresBatch(talk, address, times)
    outcome = batch.between(bundle)
    if batch.wakes:
        talk.execute(sql("notify"), (address.channel,))
    return outcome


def check_carries(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Refuse a connection that has no transaction, or cannot say what we have to say."""
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise BadInput("this connection commits every statement by itself; begin a transaction first")
    if connection.info.encoding == "ascii":
        # Then psycopg gives bytes for texts, and a key would not be the one that was written.
        raise BadInput("this connection speaks SQL_ASCII; let it SET client_encoding = 'UTF8' first")


class _ForeignTalk:
    """The user's connection, spoken to as our statements expect it, whatever its factories."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: bytes, params: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        """Send one statement."""
        return psycopg.RawCursor(self._connection, row_factory=tuple_row).execute(query, params)

    def pipeline(self) -> AbstractContextManager[object]:
        """Let statements travel together."""
        return self._connection.pipeline()


def foreign_connection(thing: object) -> psycopg.Connection[Any]:
    """Return the psycopg connection behind a connection or session of the user."""
    if isinstance(thing, psycopg.Connection):
        return thing
    inner = getattr(thing, "connection", None)
    # A Session gives its Connection when called, a Connection its pooled connection, and that the driver's.
    found = inner() if callable(inner) else thing
    driver = getattr(getattr(found, "connection", None), "driver_connection", None)
    if isinstance(driver, psycopg.Connection):
        return driver
    raise BadInput(
        f"within= takes what app.transaction() gives, a psycopg connection, or an SQLAlchemy session or "
        f"connection of an engine postgresql+psycopg://; not {type(thing).__name__}. For an async connection "
        "or session there is submit_aio"
    )
