"""Files and databases that an older revision has made, with jobs in every state (`fixtures/README.md`).

A test gets a copy of its own, what is in it, and a clock by which it is two hours old: leases of killed
workers have run out then, and the ones that are called live have not.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.postgres.server import Server

FOLDER = Path(__file__).parent / "fixtures"
MADE_BY = "82afe54"
_SCHEMA = "tally_of_old"


@dataclass(frozen=True, slots=True)
class OldJob:
    """A job of an old file: what it shows, what to send it, and what it comes to then.

    `state` is None for a job that must not be found. A held job comes to `resumed` when it is resumed.
    """

    id: str
    case: str
    signals: dict[str, Any] = field(default_factory=dict)
    state: str | None = "SUCCEEDED"
    result: Any = None
    resumed: Any = None


class OldClock:
    """A clock that goes on from the instant by which a file is two hours old."""

    def __init__(self, wall_ms: int, boot_ms: int, epoch: str) -> None:
        self._wall_ms = wall_ms
        self._boot_ms = boot_ms
        self._epoch = epoch
        self._begun = time.monotonic()

    def wall_ms(self) -> int:
        return self._wall_ms + self._passed_ms()

    def boot_ms(self) -> int:
        return self._boot_ms + self._passed_ms()

    def epoch(self) -> str:
        return self._epoch

    def monotonic(self) -> float:
        return time.monotonic()

    def pause(self, ms: int, stop: threading.Event) -> bool:
        return stop.wait(ms / 1000)

    async def pause_aio(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    def _passed_ms(self) -> int:
        return int((time.monotonic() - self._begun) * 1000)


def sqlite_file(folder: Path, made_by: str = MADE_BY) -> Path:
    """Write a copy of the old SQLite file into a folder and return its path."""
    path = folder / "shop.db"
    path.write_bytes(gzip.decompress((FOLDER / made_by / "shop.db.gz").read_bytes()))
    return path


def restore_postgres(server: Server, schema: str, made_by: str = MADE_BY) -> str:
    """Restore the old database into a schema that is not there yet, and return the address of it."""
    dump = gzip.decompress((FOLDER / made_by / "shop.sql.gz").read_bytes()).decode()
    # What begins with a backslash is meant for psql.
    lines = [line for line in dump.replace(_SCHEMA, schema).splitlines() if not line.startswith("\\")]
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("\n".join(lines).encode())
    return server.url(schema=schema, options=f"-c%20search_path%3D{schema}")


def old_jobs(store: str, made_by: str = MADE_BY) -> list[OldJob]:
    """Return what is in the old file of a store, `sqlite` or `postgres`."""
    return [OldJob(**job) for job in _described(store, made_by)["jobs"]]


def old_clock(store: str, made_by: str = MADE_BY) -> OldClock:
    """Return the clock by which that file is two hours old."""
    return OldClock(**_described(store, made_by)["clock"])


def _described(store: str, made_by: str) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((FOLDER / made_by / f"{store}.json").read_text("utf-8"))
    return described
