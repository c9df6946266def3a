"""Databases that have the tables already: to copy one costs a third of what making the tables does."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tallystick.clock import SystemClock
from tallystick.store.postgres.store import PostgresStore
from tests.postgres.server import Server
from tests.postgres.subject import fresh_schema

SCHEMA = "shop"
_TEMPLATE = "with_tables"
# Databases are of a few megabytes: files that are copied as they are go faster than pages through the log.
_COPY = f"CREATE DATABASE {{}} TEMPLATE {_TEMPLATE} STRATEGY file_copy"


@contextmanager
def copied_database(server: Server) -> Iterator[str]:
    """Return the name of a database with empty tables in the schema `SCHEMA`, which is gone afterwards."""
    name = f"d_{fresh_schema()}"
    _make_template(server)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(_COPY.format(name).encode())
    try:
        yield name
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


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
