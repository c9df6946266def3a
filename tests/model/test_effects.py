"""Every promise about effects holds in every reachable state; a world without it shows the double."""

from __future__ import annotations

import sys

import pytest

from tests.model.effects import EffectWorld, Shape
from tests.model.search import explore

WORLDS = {
    "one job": (2_000, Shape()),
    "one job that is cancelled": (1_300, Shape(cancels=1, expiries=0)),
    "one job that is ended by force": (2_800, Shape(cancels=1, forces=1, expiries=0)),
    "two jobs with one key": (8_900, Shape(jobs=2, expiries=0)),
}
LARGE = {
    "one job, two deaths": (16_000, Shape(crashes=2, expiries=2)),
    "one job that is cancelled, and loses its lease": (5_000, Shape(cancels=1)),
    "two jobs with one key, cancelled": (20_000, Shape(jobs=2, expiries=0, cancels=1)),
}


def searched(name: str, floor: int, shape: Shape) -> None:
    report = explore(EffectWorld(shape))
    sys.stdout.write(f"{name}: {report}\n")
    assert not report.broken, report
    assert report.states >= floor, "the world has become smaller than this file says"


@pytest.mark.parametrize("name", WORLDS)
def test_every_promise_holds_in_every_state(name):
    searched(name, *WORLDS[name])


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LARGE)
def test_every_promise_holds_in_every_state_of_larger_worlds(name):
    searched(name, *LARGE[name])


@pytest.mark.parametrize(
    "shape", [Shape(stops=True), Shape(slow=True)], ids=["a stopped process", "a slow provider"]
)
def test_a_world_that_breaks_the_promise_shows_the_double(shape):
    report = explore(EffectWorld(shape))
    sys.stdout.write(f"{report}\n")
    assert "2 charges under one key" in report.broken
