"""The one server of a benchmark run, started as the tests start theirs; a fresh database each time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tallystick.testing.postgres_server import Server, find_binaries, make_server

# What a careful administrator of a small machine would set; durability is as shipped.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "5min",
    "deadlock_timeout": "1s",
    "log_min_messages": "fatal",
}
_numbers = itertools.count(1)


@contextmanager
def running(changed: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Start a server that syncs, and remove it in the end."""
    settings = {**SETTINGS, **(changed or {})}
    if counts_statements(find_binaries()):
        settings["shared_preload_libraries"] = "pg_stat_statements"
    server = make_server(fsync=True, settings=settings)
    try:
        yield server
    finally:
        server.remove()


def counts_statements(binaries: Path) -> bool:
    """Tell whether these binaries come with pg_stat_statements."""
    return any((binaries.parent / "lib").rglob("pg_stat_statements.so"))


@contextmanager
def database(server: Server) -> Iterator[str]:
    """Make a database, return its address, and drop it whoever is still connected."""
    name = f"measured_{next(_numbers)}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]  # a name of our own making
    try:
        yield server.dsn.removesuffix("/postgres") + f"/{name}"
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]  # as above
            # What a side has left in memory and log is not to be paid for by the next one.
            connection.execute("CHECKPOINT")
