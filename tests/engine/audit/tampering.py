"""Changes to a database, one at a time: hostile values in each column; rows gone, twice or swapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import apsw
import psycopg

from tallystick.engine.audit import check_job
from tallystick.engine.audit.whole_store import beyond_jobs
from tests.engine.audit.hostile import HostileValues

KEYS = {
    "jobs": ("job_id",),
    "attempts": ("job_id", "unit", "attempt"),
    "effect_keys": ("exec_id",),
    "steps": ("job_id", "dimension", "name", "occurrence"),
    "messages": ("guid",),
    "events": ("job_id", "n"),
    "outbox": ("outbox_id",),
    "idempotency": ("tenant_id", "scope", "value"),
    "job_tags": ("tag", "job_id"),
    "pruned": ("seq",),
    "acts": ("seq",),
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
    "attempts": ("status", "reason", "charged", "guid = 'start'", "unit = ''"),
    "effect_keys": ("outcome", "ended_by", "calls"),
    "steps": ("kind", "state", "n IS NULL", "origin_job_id IS NULL", "failed > 0"),
    "messages": ("kind", "ledger / 100000000", "acked_at IS NULL", "name = 'cancel'"),
    "events": ("type",),
    "outbox": ("state", "via", "tenant_id"),
    "pruned": ("whole",),
    "acts": ("about", "who = ''"),
}
Statement = tuple[str, tuple[Any, ...]]


class Change(NamedTuple):
    """One change: of a value, of a row, or of two rows that change places."""

    table: str
    what: str
    job_id: str
    about: str
    do: tuple[Statement, ...]
    undo: tuple[Statement, ...]
    row: dict[str, Any]
    # Of rows that change places: the columns that are others afterwards.
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.table}.{self.what}: {self.about}"


class Database(ABC):
    """A database without its guards."""

    @abstractmethod
    def run(self, statement: str, given: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        """Name, type and whether it may be null, of each column that is stored."""

    @abstractmethod
    def tables(self) -> set[str]: ...


class SqliteFile(Database):
    def __init__(self, url: str) -> None:
        self.db = apsw.Connection(url.removeprefix("sqlite:///"))
        self.db.execute(
            "pragma ignore_check_constraints = 1; pragma synchronous = off; pragma foreign_keys = off"
        )
        for kind, which in (("trigger", "type = 'trigger'"), ("index", "sql like 'CREATE UNIQUE%'")):
            for (name,) in list(self.db.execute(f"select name from sqlite_master where {which}")):
                self.db.execute(f"drop {kind} {name}")

    def run(self, statement: str, given: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return list(self.db.execute(statement, given))

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        rows = self.run(f"select name, type, \"notnull\", hidden from pragma_table_xinfo('{table}')")
        return [(name, kind, not notnull) for name, kind, notnull, hidden in rows if not hidden]

    def tables(self) -> set[str]:
        named = self.run("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        return {name for (name,) in named}


class PostgresSchema(Database):
    def __init__(self, url: str) -> None:
        address, _, options = url.partition("?")
        self.schema = dict(part.split("=", 1) for part in options.split("&"))["schema"]
        self.db = psycopg.connect(address, autocommit=True)
        self.db.execute("set session_replication_role = replica; set synchronous_commit = off")
        self.db.execute(f"set search_path = {self.schema}")
        checks = self.run(
            "select conrelid::regclass::text, conname from pg_constraint "
            f"where contype in ('c', 'f') and connamespace = '{self.schema}'::regnamespace"
        )
        for table, name in checks:
            self.run(f"alter table {table} drop constraint {name}")
        unique = self.run(
            "select indexrelid::regclass::text from pg_index join pg_class on pg_class.oid = indexrelid "
            f"where indisunique and not indisprimary and relnamespace = '{self.schema}'::regnamespace"
        )
        for (name,) in unique:
            self.run(f"drop index {name}")

    def run(self, statement: str, given: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        done = self.db.execute(statement.replace("?", "%s"), given)
        return done.fetchall() if done.description else []

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        rows = self.run(
            "select column_name, data_type, is_nullable = 'YES' from information_schema.columns "
            "where table_schema = ? and table_name = ? and is_generated = 'NEVER' order by ordinal_position",
            (self.schema, table),
        )
        kinds = {"bigint": "INTEGER", "bytea": "BLOB"}
        return [(name, kinds.get(kind, "TEXT"), nullable) for name, kind, nullable in rows]

    def tables(self) -> set[str]:
        named = self.run(
            "select table_name from information_schema.tables "
            "where table_schema = ? and table_type = 'BASE TABLE'",
            (self.schema,),
        )
        return {name for (name,) in named}


class Books:
    """A database without its guards, and the check that must see what is done to it."""

    def __init__(self, url: str, inspection: Any) -> None:
        self.kind = "sqlite" if url.startswith("sqlite") else "postgres"
        self.db = SqliteFile(url) if self.kind == "sqlite" else PostgresSchema(url)
        self.inspection = inspection
        self.now = inspection.lease_clock()
        self._columns = {table: self.db.columns(table) for table in KEYS}

    def close(self) -> None:
        self.db.db.close()

    def columns(self, table: str) -> list[tuple[str, str, bool]]:
        """Name, type and whether it may be null, of each column that is stored."""
        return self._columns[table]

    def rows(self, table: str, *, all_rows: bool, kept: int = 1) -> list[list[dict[str, Any]]]:
        """The rows of a table by their kinds, of each kind the first few, unless all are asked for."""
        names = [name for name, _kind, _null in self._columns[table]]
        ended = "job_id in (select job_id from jobs where completed_at is not null)"
        kinds = KINDS.get(table, ("1",))
        if "job_id" in names and table != "pruned":
            kinds = (*kinds, ended)
        order = ", ".join(KEYS[table])
        alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        told = self.db.run(f"select {', '.join(names)} from {table} order by {order}")
        kind_of = self.db.run(f"select {', '.join(kinds)} from {table} order by {order}")
        for row, kind in zip(told, kind_of, strict=True):
            some = alike.setdefault(kind, [])
            if all_rows or len(some) < kept:
                some.append(dict(zip(names, row, strict=True)))
        return list(alike.values())

    def row(self, table: str, *place: Any) -> dict[str, Any]:
        """One row by its key."""
        names = [name for name, _kind, _null in self._columns[table]]
        (row,) = self.db.run(f"select {', '.join(names)} from {table} where {_key(table)}", place)
        return dict(zip(names, row, strict=True))

    @property
    def ended(self) -> set[str]:
        """The jobs that have ended."""
        return {job_id for (job_id,) in self.db.run("select job_id from jobs where completed_at is not null")}

    def newest(self, log: str) -> int:
        """The last line of the log of removals, or of the chain of acts."""
        ((newest,),) = self.db.run(f"select max(seq) from {log}")
        return newest

    def is_dropped(self, row: dict[str, Any]) -> bool:
        """Whether a message has entered a wait that was never answered."""
        place = (row["job_id"], row["dimension"], row["name"], row["occurrence"])
        return self.db.run(f"select state from steps where {_key('steps')}", place) == [("CANCELLED",)]

    def found(self, change: Change) -> bool:
        """Whether the check sees a change, which is there for this while."""
        with self.made(change):
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
    def made(self, change: Change) -> Iterator[None]:
        for statement in change.do:
            self.db.run(*statement)
        try:
            yield
        finally:
            for statement in change.undo:
                self.db.run(*statement)

    def _stands(self, table: str, row: dict[str, Any]) -> bool:
        return bool(self.db.run(f"select 1 from {table} where {_key(table)}", _place(table, row)))

    def changes(self, table: str, *, all_rows: bool) -> Iterator[Change]:
        """Hostile values for every column of these rows; each row gone and twice; two rows swapped."""
        hostile = HostileValues(table, [row for alike in self.rows(table, all_rows=True) for row in alike])
        for alike in self.rows(table, all_rows=all_rows):
            for row in alike:
                for name, kind, nullable in self._columns[table]:
                    values = hostile.of(row, name, kind, nullable=nullable)
                    changes = (self.changed(table, row, name, value) for value in values)
                    yield from (change for change in changes if change is not None)
                yield self.gone(table, row)
                yield self.twice(table, row)
        for alike in self.rows(table, all_rows=all_rows, kept=2):
            for one, other in pairwise(alike):
                yield from self._swapped(table, one, other)

    def changed(self, table: str, row: dict[str, Any], name: str, value: Any) -> Change | None:
        """Another value in one cell; None where that is the place of another row."""
        after = {**row, name: value}
        if name in KEYS[table] and self._stands(table, after):
            return None
        statement = f"update {table} set {name} = ? where {_key(table)}"
        about = f"{row[name]!r} to {value!r} of {named(table, row)}"[:300]
        do = (statement, (value, *_place(table, row)))
        undo = (statement, (row[name], *_place(table, after)))
        return Change(table, name, job_of(row), about, (do,), (undo,), row)

    def gone(self, table: str, row: dict[str, Any]) -> Change:
        """A row that is not there."""
        do = (f"delete from {table} where {_key(table)}", _place(table, row))
        undo = (self._insert(table), tuple(row.values()))
        return Change(table, "row gone", job_of(row), named(table, row), (do,), (undo,), row)

    def twice(self, table: str, row: dict[str, Any]) -> Change:
        """A row with a copy beside it."""
        last = KEYS[table][-1]
        other = f"{row[last]}-2" if isinstance(row[last], str) else 1_000 + (row[last] or 0)
        copy = {**row, last: other}
        do = (self._insert(table), tuple(copy.values()))
        undo = (f"delete from {table} where {_key(table)}", _place(table, copy))
        return Change(table, "row twice", job_of(row), named(table, row), (do,), (undo,), row)

    def _swapped(self, table: str, one: dict[str, Any], other: dict[str, Any]) -> Iterator[Change]:
        """Give two rows each what the other says, if that is something else."""
        rest = [name for name, _kind, _null in self._columns[table] if name not in KEYS[table]]
        differing = tuple(name for name in rest if one[name] != other[name])
        if not differing:
            return
        statement = f"update {table} set {', '.join(f'{name} = ?' for name in rest)} where {_key(table)}"

        def put(what: dict[str, Any], where: dict[str, Any]) -> Statement:
            return (statement, (*(what[name] for name in rest), *_place(table, where)))

        about = f"{named(table, one)} and {named(table, other)}"
        do, undo = (put(other, one), put(one, other)), (put(one, one), put(other, other))
        yield Change(table, "rows swapped", job_of(one), about, do, undo, one, differing)

    def _insert(self, table: str) -> str:
        names = [name for name, _kind, _null in self._columns[table]]
        return f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"


def _key(table: str) -> str:
    return " and ".join(f"{name} = ?" for name in KEYS[table])


def _place(table: str, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[part] for part in KEYS[table])


def job_of(row: dict[str, Any]) -> str:
    return str(row.get("job_id") or "")


def named(table: str, row: dict[str, Any]) -> str:
    about = {
        name: row[name]
        for name in ("kind", "state", "status", "type", "reason", "name", "handler", "outcome")
        if name in row
    }
    return f"{table} {[row[part] for part in KEYS[table]]} {about}"
