"""A class name means one thing in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache

from tests.tidy.tree import SRC, parsed, python_files


@cache
def places() -> dict[str, list[str]]:
    """Return where each public class of the package is declared."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in python_files(SRC):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SRC).as_posix())
    return found


def test_a_class_name_exists_once_in_the_package():
    assert places()["Segment"]
    assert {name: files for name, files in places().items() if len(files) > 1} == {}
