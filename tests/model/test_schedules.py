"""Every tick is one job, in every reachable state, and each guard that is removed is missed."""

from __future__ import annotations

import sys

import pytest

from tallystick.core.schedules import verbs
from tallystick.core.schedules.rows import Missed, Overlap
from tests.model.schedules import EVERY_MS, ScheduleWorld, Shape
from tests.model.search import explore
from tests.model.test_queues import mutants_of

WORLDS = {
    "all ticks": Shape(),
    "the last of those that were missed": Shape(missed=Missed.LAST),
    "missed ticks are left out": Shape(missed=Missed.SKIP),
    "paused": Shape(missed=Missed.LAST, pauses=1, deaths=0),
    "left out while one runs": Shape(overlap=Overlap.SKIP),
    "the old one is cancelled": Shape(overlap=Overlap.CANCEL_OLD),
    "the old one needs long to end": Shape(missed=Missed.SKIP, overlap=Overlap.CANCEL_OLD),
    "only the last replaces the old one": Shape(missed=Missed.LAST, overlap=Overlap.CANCEL_OLD),
    "more than are made up for": Shape(jump_ms=1_002 * EVERY_MS, steps=1, deaths=0),
    "one instant": Shape(once=True),
    "one instant that was missed": Shape(once=True, missed=Missed.LAST),
    "spread over some seconds": Shape(missed=Missed.LAST, jitter_ms=20_000),
}
FUNCTIONS = (
    "decide",
    "_made_up",
    "decide_overlap",
    "ticked",
    "moved",
    "held",
    "paused",
    "resumed",
    "_due",
    "_newest",
)
# A schedule without a next tick is not due either, and one that is due has a newest tick.
EQUAL = {"decide: without `schedule.next_at is None`", "_newest: without `tick is not None`"}
# A search for a tick that never ends is not tried.
ENDLESS = {"_newest: without `_due_at(schedule, tick) > now`"}


@pytest.mark.parametrize("name", WORLDS)
def test_every_promise_about_a_schedule_holds_in_every_state(name):
    report = explore(ScheduleWorld(WORLDS[name]))
    sys.stdout.write(f"{name}: {report}\n")
    assert not report.broken, report
    assert report.states > 20


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_guard_of_schedules_that_is_removed_is_missed():
    def is_caught(rules) -> bool:
        return any(explore(ScheduleWorld(shape, rules)).broken for shape in WORLDS.values())

    tried = [each for each in mutants_of(verbs, FUNCTIONS) if each[0] not in EQUAL | ENDLESS]
    assert len(tried) >= 16
    survivors = [name for name, rules in tried if not is_caught(rules)]
    assert not survivors
