"""The vocabulary of the stores has one door: `tallystick.store.api`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module

import pytest

from tallystick.store import api
from tests.tidy.tree import ROOT, SRC, offences, parsed, python_files

PARTS = (
    "tallystick.store.primitives",
    "tallystick.core.requests",
    "tallystick.core.values",
    "tallystick.core.verbs.control_requests",
)
# Who defines a part of it, or is needed by one of them; and the rules, which stand below the stores.
BEHIND = {
    *(SRC / "store" / f"{name}.py" for name in ("api", "primitives", "inspection")),
    *python_files(SRC / "core"),
}


def test_everybody_imports_the_vocabulary_of_the_stores_from_its_door():
    folders = (SRC, ROOT / "tests", ROOT / "bench", ROOT / "demo")
    files = [path for folder in folders for path in python_files(folder) if path not in BEHIND]
    assert not [line for path in files for line in offences(path, past_the_door(parsed(path)))]


@pytest.mark.parametrize("name", PARTS)
def test_the_door_has_everything_that_is_behind_it(name: str):
    part = import_module(name)
    defined = {
        word
        for word, value in vars(part).items()
        if not word.startswith("_") and getattr(value, "__module__", None) == name
    }
    assert defined
    assert defined <= set(api.__all__)


def test_a_way_past_the_door_is_found():
    assert list(past_the_door(ast.parse("from tallystick.core.values import Fence")))
    assert not list(past_the_door(ast.parse("from tallystick.store.api import Fence")))


def past_the_door(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in PARTS:
            yield node.lineno, f"from {node.module}; import it from tallystick.store.api"
