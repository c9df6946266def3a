"""Databases that have the tables already, lent to one test after the other.

To make the tables costs a server more than most tests do, and to copy a database with its tables hardly less,
because the first statements in it find every catalog cold. So a database is emptied and lent again. One that
a test left in another shape, or in use, is not: it is dropped.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tallystick.clock import SystemClock
from tallystick.store.postgres.store import PostgresStore
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

SCHEMA = "shop"
_TEMPLATE = "with_tables"
# Databases are of a few megabytes: files that are copied as they are go faster than pages through the log.
_COPY = f"CREATE DATABASE {{}} TEMPLATE {_TEMPLATE} STRATEGY file_copy"
# How long the last connections of a test may take to end, which its clients have closed.
_LEAVE_SECONDS = 0.5

_TABLES = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace"
_RESTART = (
    "SELECT setval(oid::regclass, 1, false) FROM pg_class"
    " WHERE relkind = 'S' AND relnamespace = %s::regnamespace"
)
_OTHERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
# What is declared has rows in catalogs, and a change makes a new row: `xmin` names the transaction that wrote
# it. Of pg_class only the names count: how large a table is stands there too.
_CATALOGS = {
    "pg_class": "oid, relname, relkind",
    "pg_attribute": "attrelid, attnum, xmin",
    "pg_constraint": "oid, xmin",
    "pg_trigger": "oid, xmin",
    "pg_proc": "oid, xmin",
    "pg_type": "oid, xmin",
    "pg_index": "indexrelid, xmin",
    "pg_namespace": "oid, xmin",
    "pg_extension": "oid, xmin",
}
_FIRST_OID = 16_384
_SHAPE = " UNION ALL ".join(
    f"SELECT '{catalog}', count(*), sum(hashtext(row({columns})::text)) FROM {catalog}"
    f" WHERE {columns.partition(',')[0]} >= {_FIRST_OID}"
    for catalog, columns in _CATALOGS.items()
)
_SETTINGS = """
SELECT setconfig FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
WHERE datname = current_database()
"""


class _Database:
    """One database of this process, and what it is like when it is empty."""

    def __init__(self, server: Server) -> None:
        self.name = f"d_{fresh_schema()}"
        self._server = server
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(_COPY.format(self.name).encode())
        with self._connect() as connection:
            self._tables = {name for (name,) in connection.execute(_TABLES, [SCHEMA])}
            self._kept = {name for name in self._tables if self._rows(connection, name)}
            self._empty = self._look(connection)

    def is_empty_again(self) -> bool:
        """Empty the tables, drop those of the test, and tell whether all is as it was at first."""
        with self._connect() as connection:
            until = time.monotonic() + _LEAVE_SECONDS
            while connection.execute(_OTHERS).fetchall():
                if time.monotonic() > until:
                    return False
            # The books refuse to be emptied; a replica does not ask them.
            connection.execute("SET session_replication_role = replica")
            found = {name for (name,) in connection.execute(_TABLES, [SCHEMA])}
            for table in found - self._tables:
                connection.execute(sql.SQL("DROP TABLE {} CASCADE").format(self._in_schema(table)))
            # Rows that are deleted and vacuumed leave nothing, and cost a tenth of a TRUNCATE of all tables.
            for table in (self._tables - self._kept) & found:
                if connection.execute(sql.SQL("DELETE FROM {}").format(self._in_schema(table))).rowcount:
                    connection.execute(sql.SQL("VACUUM {}").format(self._in_schema(table)))
            connection.execute(_RESTART, [SCHEMA])
            return self._look(connection) == self._empty

    def drop(self) -> None:
        with psycopg.connect(self._server.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)".encode())

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._server.url(database=self.name).rstrip("?"), autocommit=True)

    def _look(self, connection: psycopg.Connection) -> list[Any]:
        rows = [(table, self._rows(connection, table)) for table in sorted(self._kept)]
        shape = sorted(connection.execute(_SHAPE.encode()))
        return [shape, connection.execute(_SETTINGS).fetchall(), rows]

    def _rows(self, connection: psycopg.Connection, table: str) -> list[Any]:
        query = sql.SQL("SELECT {}::text FROM {} ORDER BY 1")
        return connection.execute(query.format(sql.Identifier(table), self._in_schema(table))).fetchall()

    def _in_schema(self, table: str) -> sql.Identifier:
        return sql.Identifier(SCHEMA, table)


# By the server and the process: a fork uses none of what its parent has.
_free: dict[tuple[str, int], list[_Database]] = {}


@contextmanager
def lent_database(server: Server) -> Iterator[str]:
    """Return the name of a database with empty tables in the schema `SCHEMA`, which only the caller uses."""
    free = _free.setdefault((server.folder, os.getpid()), [])
    _make_template(server)
    database = free.pop() if free else _Database(server)
    try:
        yield database.name
    finally:
        if database.is_empty_again():
            free.append(database)
        else:
            database.drop()


def _make_template(server: Server) -> None:
    """Make the tables once for all processes of this run."""
    done = Path(server.folder, "template")
    if done.exists():
        return
    with Path(server.folder, "template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {_TEMPLATE}".encode())
            PostgresStore(server.url(database=_TEMPLATE, schema=SCHEMA), SystemClock()).close()
            done.touch()
