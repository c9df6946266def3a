"""SQL is text in .sql files, never assembled in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tallystick.core.digits import ActivityLedger, GuidLedger
from tests.tidy.tree import SRC, docstring_nodes, offences, parsed, python_files

STATEMENT = re.compile(
    r"""\s*(
        select\b.*\bfrom\b | select\s+[\d*?] | update\s+\S+\s+set\b
      | insert\s+(or\s+\w+\s+)?into\b | replace\s+into\b
      | delete\s+from\b | merge\s+into\b | truncate\s+(table\s+)?\w+$
      | (create|alter|drop)\s+((or\s+replace|unique|temp|temporary|virtual)\s+)?
        (table|index|view|trigger|function|schema|type|sequence)\b
      | with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s*(not\s+)?(materialized\s*)?\(
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# How a connection is opened and a transaction bounded: no table is named, so a store may say it in place.
BOUNDARY = re.compile(
    r"\s*(pragma\s+\w+|begin\s+(immediate|exclusive|deferred|transaction)|savepoint\s+\w+|(un)?listen\s+\w+;?$)",
    re.IGNORECASE,
)

LONG_NUMBER = re.compile(r"\b\d{9,}\b")

# Prints the parts of schema files that follow from the rules, and runs nothing.
PRINTER = SRC / "core" / "sql_rules.py"


def test_statements_live_in_sql_files():
    others = [path for path in python_files(SRC) if path != PRINTER]
    assert not [line for path in others for line in offences(path, matching(parsed(path), STATEMENT))]


def test_only_a_store_opens_connections_and_bounds_transactions():
    outside = [path for path in python_files(SRC) if not path.is_relative_to(SRC / "store")]
    assert not [line for path in outside for line in offences(path, matching(parsed(path), BOUNDARY))]


def test_digits_in_statements_are_marks_of_a_ledger():
    """A statement writes ledgers as numbers; each must be something that a ledger can say."""
    statements = sorted([*(SRC / "store").glob("*/statements/*.sql"), *(SRC / "store").glob("*/parts/*.sql")])
    assert statements
    strange = [
        f"{path.parent.parent.name}/{path.name}: {number}"
        for path in statements
        for number in LONG_NUMBER.findall(path.read_text("utf-8"))
        if not says_something(int(number))
    ]
    assert not strange


def says_something(number: int) -> bool:
    return any(
        sum(field.weight * field.of(number) for field in ledger.FIELDS if field.of(number) <= 1) == number
        for ledger in (ActivityLedger, GuidLedger)
    )


@pytest.mark.parametrize(
    ("number", "legal"),
    [(1_111_000_000_001, True), (100_000_000, True), (11_000_000_000, True), (20_000_000_000, False)],
)
def test_a_number_that_is_no_ledger_is_found(number: int, *, legal: bool):
    assert says_something(number) is legal


@pytest.mark.parametrize(
    "source",
    [
        "'select * from jobs'",
        "'''\n  INSERT OR IGNORE INTO jobs VALUES (?)'''",
        "f'UPDATE {table} SET state = 1'",
        "'delete from jobs'",
        "'CREATE UNIQUE INDEX one ON jobs (id)'",
        "'with due as (select 1)'",
    ],
)
def test_a_statement_in_python_is_found(source: str):
    assert list(matching(ast.parse(f"x = {source}"), STATEMENT))


@pytest.mark.parametrize(
    "source", ["'select a queue'", "'update'", "'delete the job'", "'with care as usual'"]
)
def test_ordinary_words_are_no_statement(source: str):
    assert not list(matching(ast.parse(f"x = {source}"), STATEMENT))


def matching(tree: ast.Module, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    docstrings = set(docstring_nodes(tree))
    for node in ast.walk(tree):
        if node in docstrings:
            continue
        text = text_of(node)
        if text is not None and pattern.match(text):
            yield node.lineno, text.strip().splitlines()[0]


def text_of(node: ast.AST) -> str | None:
    """Return a string literal, with `x` where an f-string has a value."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or "x" for part in parts)
    return None
