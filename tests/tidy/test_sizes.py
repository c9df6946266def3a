"""Files and functions stay small enough to read in one sitting."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, SRC, offences, parsed, project_files, python_files, short

FUNCTION_LINES = 50
FOLDER_MODULES = 15
GLOSSARY_ROWS = 50
ARCHITECTURE_LINES = 200


@pytest.mark.parametrize(
    ("folder", "limit"), [("src", 400), ("tests", 600), ("bench", 600), ("examples", 60)]
)
def test_no_file_is_longer_than_its_limit(folder: str, limit: int):
    lengths = {
        short(path): len(path.read_text("utf-8").splitlines())
        for path in project_files()
        if path.is_relative_to(ROOT / folder) and path.suffix == ".py"
    }
    assert not {name: length for name, length in lengths.items() if length > limit}


def test_no_folder_has_more_modules_than_a_reader_can_tell_apart():
    folders = Counter(short(path.parent) for path in python_files(SRC) if path.name != "__init__.py")
    assert not {folder: modules for folder, modules in folders.items() if modules > FOLDER_MODULES}


def test_the_words_and_the_map_fit_into_a_head():
    """A newcomer reads both on the first day."""
    rows = [
        line
        for line in (ROOT / "GLOSSARY.md").read_text("utf-8").splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| word |"))
    ]
    assert 0 < len(rows) <= GLOSSARY_ROWS
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= ARCHITECTURE_LINES


def test_no_function_is_longer_than_fifty_lines_without_its_docstring():
    assert not [line for path in python_files(SRC) for line in offences(path, long_functions(parsed(path)))]


def test_no_module_has_a_name_that_says_nothing():
    empty = {"base", "common", "helpers", "helper", "misc", "models", "types", "util", "utils"}
    assert not [short(path) for path in python_files(SRC) if path.stem in empty or len(path.stem) < 3]


def test_a_long_function_is_found_and_its_docstring_does_not_count():
    body = "    x = 1\n" * FUNCTION_LINES
    docstring = '    """Say\n\n\n    much."""\n'
    assert list(long_functions(ast.parse(f"def f():\n{docstring}{body}"))) == [(1, "f has 51 lines")]
    assert not list(long_functions(ast.parse(f"def f():\n{docstring}{body[10:]}")))


def long_functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = lines_of(node)
            if ast.get_docstring(node):
                length -= lines_of(node.body[0])
            if length > FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {length} lines"


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_the_root_of_the_project_was_found():
    """Otherwise every rule of this folder would hold for an empty list of files."""
    assert (ROOT / "pyproject.toml").is_file()
    assert Path(SRC, "__init__.py") in python_files()
