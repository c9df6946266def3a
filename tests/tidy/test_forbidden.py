"""No code from data, no format that can run code, no error that disappears, nothing left for later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import SRC, offences, parsed, project_files, python_files

MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"}
CALLS = {"eval", "exec", "__import__", "compile"}
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
TEXTS = {".py", ".pyi", ".sql", ".md", ".toml", ".html", ".js", ".css", ".sh", ""}


def test_nothing_in_the_package_runs_code_that_it_read():
    assert not [line for path in python_files(SRC) for line in offences(path, code_from_data(parsed(path)))]


def test_nothing_in_the_package_swallows_an_error():
    assert not [line for path in python_files(SRC) for line in offences(path, swallowed(parsed(path)))]


def test_nothing_in_the_package_is_left_unwritten():
    assert not [line for path in python_files(SRC) for line in offences(path, unwritten(parsed(path)))]


def test_no_file_of_the_project_has_notes_about_work_to_do():
    texts = [path for path in project_files() if path.suffix in TEXTS and path != Path(__file__)]
    assert not [line for path in texts for line in offences(path, leftovers(path.read_text("utf-8")))]


@pytest.mark.parametrize(
    "source", ["import pickle", "from marshal import loads", "import yaml", "eval('1')", "exec(text)"]
)
def test_each_way_to_run_data_is_found(source: str):
    assert list(code_from_data(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept:\n    raise",
        "try:\n    f()\nexcept KeyError:\n    pass",
        "try:\n    f()\nexcept KeyError:\n    ...",
        "with suppress(Exception):\n    f()",
        "with contextlib.suppress(OSError, BaseException):\n    f()",
    ],
)
def test_each_way_to_swallow_an_error_is_found(source: str):
    assert list(swallowed(ast.parse(source)))


def code_from_data(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, n.name) for n in names if n.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str() as module) if module.split(".")[0] in MODULES:
                yield node.lineno, f"from {module}"
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield node.lineno, f"{name}()"


def swallowed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=None):
                yield node.lineno, "except without a class"
            case ast.ExceptHandler(body=[ast.Pass() | ast.Expr(value=ast.Constant())]):
                yield node.lineno, "except that does nothing; contextlib.suppress(OneClass) says so aloud"
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
                broad = {"Exception", "BaseException"} & {a.id for a in args if isinstance(a, ast.Name)}
                if broad:
                    yield node.lineno, f"suppress({', '.join(broad)})"


def unwritten(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "NotImplementedError":
            yield node.lineno, node.id


def leftovers(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if LEFTOVER.search(line):
            yield number, line.strip()
