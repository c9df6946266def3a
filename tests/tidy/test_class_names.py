"""A class name means one thing in the package, and a private one is no public one with a line in front."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache

from tests.tidy.tree import SRC, parsed, python_files


@cache
def places() -> dict[str, list[str]]:
    """Return where each class of the package is declared, by its name without the mark of a private one."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in python_files(SRC):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(path.relative_to(SRC).as_posix())
    return found


def test_a_class_name_exists_once_in_the_package():
    assert places()["Segment"]
    assert places()["TenantForm"], "private ones count too"
    assert {name: files for name, files in places().items() if len(files) > 1} == {}
