"""SQL is text in .sql files, never assembled in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

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
# Fifteen digits, of which the fourth to the seventh are marks.
LEDGER = re.compile(r"\d{3}[01]{4}\d{8}")
DIGITS_MIN = 10**10
BY_HAND = SRC / "testing" / "expected_digits.py"

# Prints the parts of schema files that follow from the rules, and runs nothing.
PRINTER = SRC / "core" / "printing" / "sql_rules.py"


def test_statements_live_in_sql_files():
    others = [path for path in python_files(SRC) if path != PRINTER]
    assert not [line for path in others for line in offences(path, matching(parsed(path), STATEMENT))]


def test_only_a_store_opens_connections_and_bounds_transactions():
    outside = [path for path in python_files(SRC) if not path.is_relative_to(SRC / "store")]
    assert not [line for path in outside for line in offences(path, matching(parsed(path), BOUNDARY))]


def test_no_statement_knows_a_digit():
    """Digits are made by the rules and come as parameters."""
    statements = [*(SRC / "store").glob("*/statements/*.sql"), *(SRC / "store").glob("*/parts/*.sql")]
    assert statements
    assert not [path for path in statements if LONG_NUMBER.search(path.read_text("utf-8"))]


def test_no_module_knows_a_digit():
    """Digits are made by the rules; those that conformance expects are in one file, written by hand."""
    files = [path for path in python_files(SRC) if path != BY_HAND]
    assert not [line for path in files for line in offences(path, digits_in(parsed(path)))]
    assert list(digits_in(parsed(BY_HAND)))


@pytest.mark.parametrize("source", ["x = 1_111_000_000_001", "x = '001111100000001'", "x = 11_000_000_002"])
def test_a_digit_in_python_is_found(source: str):
    assert list(digits_in(ast.parse(source)))


@pytest.mark.parametrize("source", ["x = 253_402_300_799_000", "x = 10**9", "'>>> f(1_111_000_000_001)'"])
def test_other_numbers_are_no_digits(source: str):
    assert not list(digits_in(ast.parse(source)))


def digits_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the ledgers that a module spells out; a docstring may show some."""
    shown = set(docstring_nodes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in shown:
            value = node.value
            text = f"{value:015d}" if type(value) is int and value >= DIGITS_MIN else str(value)
            if LEDGER.fullmatch(text):
                yield node.lineno, f"{text} is a ledger; ask core.digits for it"


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
            yield node.lineno, text.strip().splitlines()[0]  # type: ignore[attr-defined]  # statements have one


def text_of(node: ast.AST) -> str | None:
    """Return a string literal, with `x` where an f-string has a value."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or "x" for part in parts)
    return None
