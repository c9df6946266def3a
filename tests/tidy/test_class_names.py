"""On the path of a job a class name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.tidy.tree import SRC, parsed, python_files

# What a reader holds in the head at once; forms of HTTP, pages, brokers, runs and stage are read apart.
PATH_OF_A_JOB = ("app", "core", "engine", "store", "watch", "worker")
# It has no transactions, and so its own words for heads, refusals and addresses.
APART = SRC / "store" / "azure"


def test_a_class_name_exists_once_on_the_path_of_a_job():
    places: dict[str, list[str]] = defaultdict(list)
    for folder in PATH_OF_A_JOB:
        for path in python_files(SRC / folder):
            for node in () if APART in path.parents else ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(SRC)))
    assert "Segment" in places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
