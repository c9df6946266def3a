"""The SQL of this store, one statement per file, read once."""

from __future__ import annotations

from functools import cache
from typing import Final

from tallystick.store.sql import statements
from tallystick.store.sql.statements import Dialect

_TYPES: Final = {"int": "bigint", "bytes": "bytea", "list": "text"}


def _parameter(number: int, kind: str) -> str:
    return f"${number}::{_TYPES.get(kind, kind)}" if kind else f"${number}"


DIALECT: Final = Dialect(
    package=str(__package__),
    parameter=_parameter,
    lists=(
        ("IN ", "= ANY (ARRAY(SELECT jsonb_array_elements_text(${}::text::jsonb)))"),
        ("FROM ", "FROM jsonb_array_elements_text(${}::text::jsonb) AS wanted (value)"),
    ),
    indexed="",
    one_of=lambda column, words: f"{column} IN ({', '.join(words)})",
)


@cache
def sql(name: str) -> bytes:
    """Return the statement of that name, in the bytes that go to the server, which shows its name."""
    return f"-- {name}\n{statements.find(DIALECT, name).said(DIALECT)}".encode()


def name_of(statement: bytes) -> str:
    """Return the name of a statement of ours, with which its text begins; of another one, the text."""
    ours, mark, _rest = statement.removeprefix(b"-- ").partition(b"\n")
    return (ours if mark and statement.startswith(b"-- ") else statement).decode(errors="replace")


@cache
def migrations() -> tuple[tuple[int, str, bytes], ...]:
    """Return every migration as (version, name, text), in order."""
    found = statements.migrations(DIALECT)
    return tuple((version, name, text.encode()) for version, name, text in found)
