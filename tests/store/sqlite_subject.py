"""A SQLite file as a subject of the conformance suite, and windows into the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from tallystick.clock import Clock, VirtualClock
from tallystick.store.api import Transaction
from tallystick.store.sqlite.store import SqliteStore
from tests.store.sql_subject import SqlSubject

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


class SqliteSubject(SqlSubject):
    """An empty file, opened; `by_hand` is a connection for stray statements."""

    store: SqliteStore
    crash_points = (
        "sqlite.begin.after",
        "sqlite.end_job.before",
        "sqlite.end_job.after",
        "sqlite.commit.before",
        "sqlite.commit.after",
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.clock = VirtualClock()
        self.store = SqliteStore(path, self.clock)
        self.by_hand = apsw.Connection(str(path))
        self.by_hand.set_busy_timeout(10_000)
        self.by_hand.execute("PRAGMA synchronous = OFF")
        self.by_hand.execute("PRAGMA recursive_triggers = ON")
        self.by_hand.execute("CREATE TABLE effects (value TEXT NOT NULL)")

    def open(self, clock: Clock) -> SqliteStore:
        return SqliteStore(self.path, clock)

    def rows(self, table: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        names = columns or [row[1] for row in self.by_hand.execute(f"PRAGMA table_xinfo({table})")]
        chosen = ", ".join(f'"{name}"' for name in names)
        found = self.by_hand.execute(f"SELECT {chosen} FROM {table} ORDER BY 1, 2, 3").fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def plant_row(self, table: str, **columns: object) -> None:
        places = ", ".join("?" for _ in columns)
        self.by_hand.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", tuple(columns.values())
        )

    def put_effect(self, transaction: Transaction, value: str) -> None:
        transaction.execute("INSERT INTO effects (value) VALUES (?)", (value,))

    def effects(self) -> list[str]:
        return [value for (value,) in self.by_hand.execute("SELECT value FROM effects ORDER BY value")]

    def spin(self, transaction: Transaction) -> None:
        transaction.execute(f"INSERT INTO effects {ENDLESS}")

    def close(self) -> None:
        self.by_hand.close()
        self.store.close()


def child(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a small script in a process of its own and return what came of it."""
    import os

    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment,
    )
