"""A test does not sleep and hope, and those of the app use what users use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import ROOT, offences, parsed, python_files

TESTS = ROOT / "tests"
# The one place that waits.
MAY_SLEEP = {TESTS / "patience.py"}
# What a user may import; all else belongs to one layer, and its tests stand in the folder of that layer.
PUBLIC = ("tallystick.aio", "tallystick.crash", "tallystick.errors", "tallystick.testing")
# Tests of rooms of the app itself, which no public name reaches in so many cases. The list does not grow.
OF_ITS_ROOMS = {
    "api/test_results.py",
    "remote/test_protocol_forks.py",
    "values/test_annotations.py",
    "values/test_content_hash.py",
    "values/test_declared_errors.py",
}


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


def test_tests_of_the_app_use_what_users_use():
    app = TESTS / "app"
    found = {str(path.relative_to(app)) for path in python_files(app) if list(internals(parsed(path)))}
    assert found == OF_ITS_ROOMS


@pytest.mark.parametrize(
    "source",
    [
        "import tallystick.engine.sweep",
        "from tallystick.core import limits",
        "from tallystick import engine",
        "app.runtime().store.counts()",
    ],
)
def test_each_way_to_an_internal_is_found(source: str):
    assert list(internals(ast.parse(source)))


def test_the_harness_is_no_internal():
    source = (
        "import tallystick\nfrom tallystick import Tally, aio\nfrom tallystick.testing.stepping import die"
    )
    assert not list(internals(ast.parse(source)))


def internals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module="tallystick", names=names):
                rooms = {path.stem for path in (ROOT / "src/tallystick").iterdir()}
                modules = [f"tallystick.{name.name}" for name in names if name.name in rooms]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case ast.Attribute(attr="runtime"):
                modules = ["tallystick.app.api.runtime"]
            case _:
                continue
        yield from (
            module for module in modules if module.startswith("tallystick.") and not module.startswith(PUBLIC)
        )


def test_what_the_test_command_leaves_to_the_long_one_is_run_there():
    """What `--share` leaves out is `long` only in a run with `--share`."""
    commands = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "-m pytest" in line]
    (whole,) = [line for line in commands if "--ignore=tests/tidy" in line]
    (long,) = [line for line in commands if "-m long" in line]
    assert "--share" in whole
    assert "--share" in long
