"""Checks that a user's transaction is on the server, database and schema of the store."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.rows import tuple_row

from tallystick.errors import BadInput
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.talking import Reader


class Home:
    """Where the books of this store are, told by the server and not by an address."""

    def __init__(self, address: Address, reader: Reader) -> None:
        """Ask nothing yet."""
        self._address = address
        self._reader = reader
        self.question = (sql("whereabouts"), (f"{address.schema}.jobs",))
        self._lock = threading.Lock()
        self._known: WeakSet[object] = WeakSet()

    def knows(self, connection: object) -> bool:
        """Tell whether a connection was found to lead here before; it never leads elsewhere."""
        with self._lock:
            return connection in self._known

    def check(self, connection: psycopg.Connection[Any]) -> None:
        """Refuse a connection that leads to other books than ours: no worker would look there for a job."""
        if not self.knows(connection):
            cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
            self.compare(connection, cursor.execute(*self.question).fetchall())

    def check_loan(self, connection: psycopg.Connection[Any], home: Home) -> None:
        """Refuse a transaction on loan from a store on other books, or in another schema of the database."""
        if home.question != self.question:
            raise self._elsewhere(home._address.url)
        self.check(connection)

    def compare(self, connection: object, theirs: list[tuple[Any, ...]]) -> None:
        """Refuse a connection that answers otherwise than our own."""
        ((_since, database, table),) = theirs
        if table is None or theirs != self._reader.rows("whereabouts", self.question[1]):
            raise self._elsewhere(f"database {database}")
        with self._lock:
            self._known.add(connection)

    def _elsewhere(self, where: str) -> BadInput:
        return BadInput(
            f"within= is a transaction on other books ({where}), and this Tally keeps its own in "
            f"{self._address.url}, schema {self._address.schema}; use a Tally on those",
            url=self._address.url,
        )
