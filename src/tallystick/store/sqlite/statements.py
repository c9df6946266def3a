"""The SQL of this store, one statement per file, read once; some write several rows per statement."""

from __future__ import annotations

from functools import cache
from typing import Final

from tallystick.store.sql import statements
from tallystick.store.sql.statements import Dialect

DIALECT: Final = Dialect(
    package=str(__package__),
    parameter=lambda number, _kind: f"?{number}",
    lists=(
        ("IN ", "IN (SELECT wanted.value FROM json_each(?{}) AS wanted)"),
        ("FROM ", "FROM json_each(?{}) AS wanted"),
    ),
    indexed="INDEXED BY {}",
    # For a list in brackets it would make a table of its own.
    one_of=lambda column, words: f"({' OR '.join(f'{column} = {word}' for word in words)})",
)

TABLES: Final = (
    *(
        "acts",
        "api_keys",
        "attempts",
        "clock",
        "effect_keys",
        "ended_by_minute",
        "events",
        "idempotency",
        "job_tags",
        "job_values",
        "jobs",
        "messages",
        "outbox",
        "pruned",
        "queue_buckets",
        "queue_slots",
        "queues",
        "schedules",
    ),
    *("stale_reports", "steps", "workers"),
)
"""Our tables: others in the same file are the user's."""


@cache
def sql(name: str) -> str:
    """Return the statement of that name, without its promise.

    The library looks a statement up by its whole text for every row that it writes.
    """
    return statements.find(DIALECT, name).said(DIALECT)


@cache
def takes_list(name: str) -> bool:
    """Tell whether the statement of that name writes a list of rows: all its parameters are values of one."""
    return bool(statements.find(DIALECT, name).row)


@cache
def sql_of_rows(name: str, count: int) -> str:
    """Return the statement of that name for so many rows: its values are there once for each."""
    return sql(name) if count == 1 else statements.find(DIALECT, name).said(DIALECT, count)


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Return every migration as (version, name, text), in order."""
    return tuple(statements.migrations(DIALECT))
