"""Rows are named: no part of a store takes columns by where they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import SRC, offences, parsed, python_files

# Texts, lists and inodes of which a part is meant, not columns.
CLIPPED = {"_own", "content", "content_hash", "events", "line", "name", "path", "records", "text"}
POSITION_MAX = 2


def test_no_store_takes_columns_by_their_places():
    files = python_files(SRC / "store")
    assert not [line for path in files for line in offences(path, by_place(parsed(path)))]


@pytest.mark.parametrize(
    "source", ["job[13:21]", "row[:3]", "step[2:]", "row[9]", "fence[:2]", "x.rows[0][4]"]
)
def test_a_column_by_its_place_is_found(source: str):
    assert list(by_place(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["claimed[:share]", "row[0]", "names[-1]", "self.name[:80]", "batch[index]"]
)
def test_other_subscripts_are_no_columns(source: str):
    assert not list(by_place(ast.parse(source)))


def by_place(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CLIPPED:
                continue
            case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
                if any(isinstance(bound, ast.Constant) for bound in (lower, upper)):
                    yield node.lineno, ast.unparse(node)
            case ast.Subscript(slice=ast.Constant(value=int() as place)) if place > POSITION_MAX:
                yield node.lineno, ast.unparse(node)
