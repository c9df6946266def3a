"""Changes to a finished database, one at a time: each value of each column, each row gone or twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from tallystick.engine.audit import check_job
from tallystick.engine.audit.whole_store import beyond_jobs

KEYS = {
    "jobs": ("job_id",),
    "attempts": ("job_id", "unit", "attempt"),
    "steps": ("job_id", "dimension", "name", "occurrence"),
    "messages": ("guid",),
    "events": ("job_id", "n"),
    "outbox": ("outbox_id",),
    "idempotency": ("tenant_id", "scope", "value"),
    "job_tags": ("tag", "job_id"),
    "job_values": ("job_id", "name"),
    "stale_reports": ("id",),
    "pruned": ("seq",),
    "clock": ("id",),
}
# What makes a row another kind of row: a change to one of a kind says what a change to all of them would.
KINDS = {
    "jobs": (
        "kind",
        "state",
        "handler",
        "hold",
        "error_code",
        "cancel_at IS NULL",
        "parent_step IS NULL",
        "retry_of IS NULL",
    ),
    "attempts": ("status", "reason", "charged", "guid = 'start'"),
    "steps": ("kind", "state", "n IS NULL", "origin_job_id IS NULL"),
    "messages": ("kind", "ledger / 100000000", "acked_at IS NULL", "name = 'cancel'"),
    "events": ("type",),
    "outbox": ("state", "via"),
    "pruned": ("whole",),
}


class Change(NamedTuple):
    """One change of one row: of a value, or of the row."""

    table: str
    what: str
    job_id: str
    about: str
    do: tuple[str, tuple[Any, ...]]
    undo: tuple[tuple[str, tuple[Any, ...]], ...]
    row: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.table}.{self.what}: {self.about}"


class Books:
    """A database without its guards, and the check that must see what is done to it."""

    def __init__(self, path: str, inspection: Any) -> None:
        self.db = apsw.Connection(path)
        self.db.execute(
            "pragma ignore_check_constraints = 1; pragma synchronous = off; pragma foreign_keys = off"
        )
        for (name,) in list(self.db.execute("select name from sqlite_master where type = 'trigger'")):
            self.db.execute(f"drop trigger {name}")
        for (name,) in list(
            self.db.execute(
                "select name from sqlite_master where type = 'index' and sql like 'CREATE UNIQUE%'"
            )
        ):
            self.db.execute(f"drop index {name}")
        self.inspection = inspection
        self.now = inspection.lease_clock()

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        """Name, type and whether it may be null, of each column that is stored."""
        rows = self.db.execute(f"select name, type, \"notnull\", hidden from pragma_table_xinfo('{table}')")
        return [(name, kind, not notnull) for name, kind, notnull, hidden in rows if not hidden]

    def rows(self, table: str, *, all_rows: bool) -> list[dict[str, Any]]:
        """The rows of a table; of those that are alike the first, unless all are asked for."""
        names = [name for name, _kind, _null in self.columns(table)]
        kinds = () if all_rows else KINDS.get(table, ("1",))
        kind = ", ".join(kinds) if kinds else ", ".join(KEYS[table])
        order = ", ".join(KEYS[table])
        ended = "job_id in (select job_id from jobs where completed_at is not null)"
        which = f"where {ended}" if "job_id" in names and table not in ("pruned", "stale_reports") else ""
        first = f"row_number() over (partition by {kind} order by {order})"
        told = f"select {', '.join(names)}, {first} from {table} {which}"
        return [dict(zip(names, row, strict=False)) for row in self.db.execute(told) if row[-1] == 1]

    def found(self, change: Change) -> bool:
        """Whether the check sees a change, which is there for this while."""
        with self._made(change):
            book = self.inspection.book(change.job_id) if change.job_id else None
            if book is not None and check_job(self.inspection, book, self.now).findings:
                return True
            return any(True for _ in beyond_jobs(self.inspection)) or self._found_elsewhere(change)

    def _found_elsewhere(self, change: Change) -> bool:
        """Whether another job shows it: the parent, the child, the fork."""
        return any(
            check_job(self.inspection, book, self.now).findings
            for book in self.inspection.books(after=None, limit=1000)
            if book.job_id != change.job_id
        )

    @contextmanager
    def _made(self, change: Change) -> Iterator[None]:
        self.db.execute(*change.do)
        try:
            yield
        finally:
            for undo in change.undo:
                self.db.execute(*undo)

    def _stands(self, table: str, row: dict[str, Any]) -> bool:
        key = " and ".join(f"{name} = ?" for name in KEYS[table])
        told = f"select 1 from {table} where {key}"
        return bool(list(self.db.execute(told, tuple(row[part] for part in KEYS[table]))))

    def changes(self, table: str, *, all_rows: bool) -> Iterator[Change]:
        """Every value of every column of these rows, changed; then each row gone, and each one twice."""
        columns = self.columns(table)
        for row in self.rows(table, all_rows=all_rows):
            yield from self._values(table, row, columns)
            yield self._gone(table, row, columns)
            if (again := self._twice(table, row, columns)) is not None:
                yield again

    def _values(
        self, table: str, row: dict[str, Any], columns: list[tuple[str, str, bool]]
    ) -> Iterator[Change]:
        key = " and ".join(f"{name} = ?" for name in KEYS[table])
        for name, kind, nullable in columns:
            before = row[name]
            for value in other_values(name, before, kind, nullable=nullable):
                if name in KEYS[table] and self._stands(table, {**row, name: value}):
                    continue
                here = tuple(row[part] for part in KEYS[table])
                there = tuple(value if part == name else row[part] for part in KEYS[table])
                statement = f"update {table} set {name} = ? where {key}"
                about = f"{before!r} to {value!r} of {named(table, row)}"[:200]
                do, undo = (statement, (value, *here)), ((statement, (before, *there)),)
                yield Change(table, name, job_of(row), about, do, undo, row)

    def _gone(self, table: str, row: dict[str, Any], columns: list[tuple[str, str, bool]]) -> Change:
        key = " and ".join(f"{name} = ?" for name in KEYS[table])
        names = [name for name, _kind, _null in columns]
        back = f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"
        do = (f"delete from {table} where {key}", tuple(row[part] for part in KEYS[table]))
        return Change(
            table, "row gone", job_of(row), named(table, row), do, ((back, tuple(row.values())),), row
        )

    def _twice(self, table: str, row: dict[str, Any], columns: list[tuple[str, str, bool]]) -> Change | None:
        names = [name for name, _kind, _null in columns]
        last = KEYS[table][-1]
        other = f"{row[last]}-2" if isinstance(row[last], str) else 1_000 + (row[last] or 0)
        copy = {**row, last: other}
        put = f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"
        key = " and ".join(f"{name} = ?" for name in KEYS[table])
        undo = ((f"delete from {table} where {key}", tuple(copy[part] for part in KEYS[table])),)
        return Change(
            table, "row twice", job_of(row), named(table, row), (put, tuple(copy.values())), undo, row
        )


def job_of(row: dict[str, Any]) -> str:
    return str(row.get("job_id") or "")


def named(table: str, row: dict[str, Any]) -> str:
    about = {
        name: row[name]
        for name in ("kind", "state", "status", "type", "reason", "name", "handler")
        if name in row
    }
    return f"{table} {[row[part] for part in KEYS[table]]} {about}"


def other_values(name: str, before: Any, kind: str, *, nullable: bool) -> list[Any]:
    """Values that a column may hold and that are not the one it has."""
    if name in ("charged", "detached", "whole"):
        return [1 - before]
    if before is None:
        return [1 if kind == "INTEGER" else b"x" if kind == "BLOB" else "x"]
    others: list[Any] = [None] if nullable else []
    if isinstance(before, int):
        others.append(before + 1)
    elif isinstance(before, bytes):
        others.append(bytes([before[0] ^ 1]) + before[1:] if before else b"x")
    elif before[:1] in ("{", "["):
        others.append(before.replace(":", ": ", 1) if ":" in before else f"{before} ")
    else:
        others.append(f"{before}x")
    return others
