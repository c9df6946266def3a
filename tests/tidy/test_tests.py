"""A test does not sleep for a while and hope: it waits for a condition, or it owns the clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import ROOT, offences, parsed, python_files

TESTS = ROOT / "tests"
# The one place that waits.
MAY_SLEEP = {TESTS / "patience.py"}


def test_no_test_sleeps():
    files = [path for path in python_files(TESTS) if path not in MAY_SLEEP]
    assert not [line for path in files for line in offences(path, sleeps(parsed(path)))]


@pytest.mark.parametrize(
    "source", ["time.sleep(1)", "from time import sleep", "Event().wait(2)", "threading.Event().wait(0.1)"]
)
def test_each_way_to_sleep_is_found(source: str):
    assert list(sleeps(ast.parse(source)))


def test_waiting_for_somebody_is_no_sleep():
    assert not list(sleeps(ast.parse("begun.wait(10)\nawait_it = asyncio.sleep(0)\nwait_until(done)")))


def sleeps(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr="sleep")):
                yield node.lineno, "time.sleep; wait for a condition with tests.patience.wait_until"
            case ast.ImportFrom(module="time", names=names) if "sleep" in {name.name for name in names}:
                yield node.lineno, "from time import sleep"
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="Event") | ast.Attribute(attr="Event")), attr="wait"
                )
            ):
                yield node.lineno, "an event that nobody sets; if time is the subject, say let_time_pass"
