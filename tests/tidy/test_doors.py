"""Time comes in through clock.py only, and chance through ids.py only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import SRC, offences, parsed, python_files

DOORS = {SRC / "clock.py", SRC / "ids.py"}
MODULES = {"time", "uuid", "random", "secrets"}
ATTRIBUTES = {
    ("os", "urandom"),
    ("os", "getrandom"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("loop", "time"),
    ("np", "random"),
    ("numpy", "random"),
}


def test_only_the_two_doors_ask_for_time_or_chance():
    others = [path for path in python_files(SRC) if path not in DOORS]
    assert not [line for path in others for line in offences(path, uses(parsed(path)))]


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import random as r",
        "from uuid import uuid4",
        "from secrets import token_hex",
        "from os import urandom",
        "os.urandom(8)",
        "datetime.now(UTC)",
        "datetime.datetime.utcnow()",
        "dt.date.today()",
        "np.random.default_rng()",
    ],
)
def test_each_way_around_the_doors_is_found(source: str):
    assert list(uses(ast.parse(source)))


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, n.name) for n in names if n.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str() as module, names=names):
                if module.split(".")[0] in MODULES:
                    yield node.lineno, f"from {module}"
                yield from ((node.lineno, n.name) for n in names if (module, n.name) in ATTRIBUTES)
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
                if (owner, name) in ATTRIBUTES:
                    yield node.lineno, f"{owner}.{name}"
