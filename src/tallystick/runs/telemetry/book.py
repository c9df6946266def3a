"""The book of the telemetry service: one SQLite file.

A lost page of telemetry is not a lost fact, so commits are not synced one by one; the file itself stays
sound.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

import apsw
import msgspec

from tallystick.errors import BadInput
from tallystick.runs.telemetry.records import Association, Change, TelemetryRecord

_COLUMNS: Final = (
    "seq", "record_id", "kind", "run_id", "parent_id", "name", "status", "ts", "finished_at", "error",
    "trace_id", "span_id", "data", "commit", "commit_source",
)  # fmt: skip


@cache
def _sql(name: str) -> str:
    return resources.files("tallystick.runs.telemetry").joinpath("sql", f"{name}.sql").read_text("utf-8")


class TelemetryBook:
    """Every record that was told; calls may come from any thread, one at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file, or make it for its owner alone."""
        name = os.fspath(path)
        self._lock = threading.Lock()
        try:
            os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            self._connection = apsw.Connection(name)
            # A pragma may answer; the statements behind it run only when the answer is read.
            list(self._connection.execute(_sql("schema")))
        except (OSError, apsw.Error) as error:
            raise BadInput(f"{name} cannot be the book of a telemetry service: {error}", file=name) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add(self, records: Sequence[TelemetryRecord]) -> int:
        """Keep records, all or none, and return how many were new; a known id changes nothing."""
        with self._lock:
            before = self._connection.total_changes()
            with self._connection:
                self._connection.executemany(_sql("insert_record"), [_row(record) for record in records])
            return self._connection.total_changes() - before

    def change(self, record_id: str, change: Change) -> bool:
        """Note what became of a record; return False when there is none of this id."""
        return self._touch("update_record", {"record_id": record_id, **_filled(change)})

    def associate(self, record_id: str, association: Association) -> bool:
        """Note a commit that came out of a record; return False when there is none of this id."""
        row = {"git_commit": association.commit.lower(), "commit_source": association.source.value}
        return self._touch("associate_commit", {"record_id": record_id, **row})

    def page(
        self, *, run_id: str = "", kind: str = "", status: str = "", after: int = 0, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return records in the order of arrival, from the one after `after` on."""
        filters: dict[str, str | int] = {
            "run_id": run_id,
            "kind": kind,
            "status": status,
            "after": after,
            "limit": limit,
        }
        return self._read("list_records", filters)

    def record(self, record_id: str) -> dict[str, Any] | None:
        """Return one record, or None when there is none of this id."""
        return next(iter(self._read("get_record", {"record_id": record_id})), None)

    def counts(self) -> list[tuple[str, str, int]]:
        """Return how many records there are by kind and status."""
        with self._lock:
            rows = self._connection.execute(_sql("count_records"))
            return [(str(kind), str(status), int(str(count))) for kind, status, count in rows]

    def _read(self, name: str, filters: dict[str, str | int]) -> list[dict[str, Any]]:
        with self._lock:
            rows = list(self._connection.execute(_sql(name), filters))
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        for record in found:
            record["data"] = msgspec.json.decode(record["data"])
        return found

    def _touch(self, name: str, row: dict[str, str]) -> bool:
        with self._lock:
            return bool(list(self._connection.execute(_sql(name), row)))


def _row(record: TelemetryRecord) -> dict[str, str]:
    return {
        "record_id": record.record_id,
        "kind": record.kind.value,
        "run_id": record.run_id,
        "parent_id": record.parent_id,
        "name": record.name,
        "status": record.status or "",
        "ts": record.ts,
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "data": msgspec.json.encode(record.data).decode(),
    }


def _filled(change: Change) -> dict[str, str]:
    return {"status": change.status or "", "finished_at": change.finished_at, "error": change.error}
