"""A schema of a real server as a subject of the conformance suite, and windows into it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from tallystick.clock import Clock, VirtualClock
from tallystick.store.api import Transaction
from tallystick.store.postgres.store import PostgresStore
from tests.postgres.server import Server
from tests.store.sql_subject import SqlSubject

_numbers = itertools.count(1)


def fresh_schema() -> str:
    """Return the name of a schema that no other test of this run uses."""
    return f"t{os.getpid()}_{next(_numbers)}"


class PostgresSubject(SqlSubject):
    """An empty schema, opened; `by_hand` is a connection for stray statements."""

    store: PostgresStore
    crash_points = (
        "postgres.begin.before",
        "postgres.end_job.before",
        "postgres.end_job.after",
        "postgres.commit.before",
        "postgres.commit.after",
    )

    def __init__(self, server: Server, *, database: str = "postgres", schema: str = "") -> None:
        self.schema = schema or fresh_schema()
        self.url = server.url(database=database, schema=self.schema)
        self.dsn = server.url(database=database).rstrip("?")
        self.clock = VirtualClock()
        self.store = PostgresStore(self.url, self.clock)
        self.by_hand = psycopg.connect(self.dsn, autocommit=True, options=f"-c search_path={self.schema}")
        self.by_hand.execute("CREATE TABLE effects (value TEXT NOT NULL)")

    def open(self, clock: Clock) -> PostgresStore:
        return PostgresStore(self.url, clock)

    def rows(self, table: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        chosen = sql.SQL(", ").join(map(sql.Identifier, columns)) if columns else sql.SQL("*")
        query = sql.SQL("SELECT {} FROM {} ORDER BY 1, 2, 3").format(chosen, sql.Identifier(table))
        cursor = self.by_hand.execute(query)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def plant_row(self, table: str, **columns: object) -> None:
        query = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(sql.Placeholder() for _ in columns),
        )
        self.by_hand.execute(query, list(columns.values()))

    def put_effect(self, transaction: Transaction, value: str) -> None:
        transaction.execute("INSERT INTO effects (value) VALUES (%s)", (value,))

    def effects(self) -> list[str]:
        return [value for (value,) in self.by_hand.execute("SELECT value FROM effects ORDER BY value")]

    def spin(self, transaction: Transaction) -> None:
        transaction.execute("INSERT INTO effects SELECT pg_sleep(600)::text")

    def close(self) -> None:
        self.by_hand.close()
        self.store.close()
