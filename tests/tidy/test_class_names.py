"""A class name means one thing in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache

from tests.tidy.tree import SRC, parsed, python_files

# What a reader holds in the head at once; here no name exists twice, whatever the list below says.
PATH_OF_A_JOB = ("app", "core", "engine", "store", "watch", "worker")
# It has no transactions, and so its own words for heads, refusals and addresses.
APART = "store/azure/"
# Names that exist twice: HTTP, pages, brokers, runs and stage are read apart. Do not add to this list.
TWICE = {
    "Act",
    "Address",
    "Answered",
    "Endpoint",
    "FactShown",
    "Field",
    "Forking",
    "Health",
    "Heard",
    "NewJob",
    "Page",
    "QueueShown",
    "Redo",
    "Refused",
    "Report",
    "Reports",
    "Resolving",
    "Result",
    "Told",
    "Why",
}


@cache
def places() -> dict[str, list[str]]:
    """Return where each public class of the package is declared."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in python_files(SRC):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SRC).as_posix())
    return found


def test_a_class_name_exists_once_on_the_path_of_a_job():
    on_the_path = {
        name: [file for file in files if file.split("/")[0] in PATH_OF_A_JOB and not file.startswith(APART)]
        for name, files in places().items()
    }
    assert on_the_path["Segment"]
    assert {name: files for name, files in on_the_path.items() if len(files) > 1} == {}


def test_a_class_name_exists_once_in_the_package_except_for_those_in_the_list():
    twice = {name: files for name, files in places().items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}
    assert TWICE - set(twice) == set(), "these exist once now: take them out of the list"
