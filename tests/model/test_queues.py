"""Every promise about queues with limits holds in every reachable state, and each guard is missed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tallystick.core.queues import admitting
from tallystick.core.queues.rows import Limits
from tests.model.mutants import changes_in
from tests.model.queues import QueueWorld, Shape
from tests.model.search import Report, explore

WORLDS = {
    "slots in all, per key and per worker": Shape(
        ("a", "a", "", ""), Limits(concurrency=3, per_key=1, worker_concurrency=2), waits=1
    ),
    "slots that are held": Shape(("a", "b", ""), Limits(concurrency=2, hold_slots=True), crashes=1, waits=1),
    "held slots of one worker": Shape(
        ("a", "", ""), Limits(worker_concurrency=1, hold_slots=True), crashes=1, waits=1
    ),
    "a rate with a burst, paused": Shape(("a", "b", ""), Limits(rate="1/1s", burst=2), pauses=1),
    "a rate for each key": Shape(("a", "a", "", ""), Limits(key_rate="1/1s")),
    "everything": Shape(
        ("a", "a", "b"),
        Limits(concurrency=2, per_key=1, worker_concurrency=1, rate="2/1s", key_rate="1/1s"),
        crashes=1,
        waits=1,
    ),
}
# Functions whose guards are taken away, one at a time.
FUNCTIONS = ("tokens", "spent", "choose", "_round", "book", "has_room_for", "take", "_bucket", "_left")
# Guards that only save a look: without them a search goes on and finds nothing.
EQUAL = {
    "choose: without `not room.is_full`",
    "choose: without `room.is_full`",
    "_round: always `room.has_room_for(key)`",
    "_round: without `room.is_full`",
}
# A search that never ends is not tried.
ENDLESS = {"choose: never `not waiting`"}


@pytest.mark.parametrize("name", WORLDS)
def test_every_promise_about_a_queue_holds_in_every_state(name):
    report = explore(QueueWorld(WORLDS[name]))
    sys.stdout.write(f"{name}: {report}\n")
    assert not report.broken, report
    assert report.states > 100


def mutants_of(kept: ModuleType, functions: tuple[str, ...]) -> list[tuple[str, ModuleType]]:
    """Return a module again and again, each time without one guard of these functions."""
    text = Path(str(kept.__file__)).read_text("utf-8")
    found = []
    for function in functions:
        for n, (name, _change) in enumerate(changes_in(ast.parse(text), function)):
            tree = ast.parse(text)
            list(changes_in(tree, function))[n][1]()
            module = ModuleType(kept.__name__)
            sys.modules[kept.__name__] = module
            try:
                exec(compile(ast.fix_missing_locations(tree), kept.__name__, "exec"), module.__dict__)
            finally:
                sys.modules[kept.__name__] = kept
            found.append((f"{function}: {name}", module))
    return found


def caught(rules: ModuleType) -> Report | None:
    """Return the first world that shows that a guard is gone."""
    for shape in WORLDS.values():
        report = explore(QueueWorld(shape, rules))
        if report.broken:
            return report
    return None


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_guard_of_admitting_that_is_removed_is_missed():
    tried = [each for each in mutants_of(admitting, FUNCTIONS) if each[0] not in EQUAL | ENDLESS]
    assert len(tried) > 35
    survivors = [name for name, rules in tried if caught(rules) is None]
    assert not survivors
