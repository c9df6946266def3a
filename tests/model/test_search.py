"""Every promise holds in every reachable state of small worlds, and each of them can still end."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tallystick.app.asking.standing import Stand
from tests.model.configurations import LARGE, SMALL, model_of
from tests.model.jobs import Jobs
from tests.model.mutants import known
from tests.model.rules import Rules, load
from tests.model.search import explore
from tests.model.sentences import words_of
from tests.model.world import Shape


@pytest.mark.parametrize("name", SMALL)
def test_every_promise_holds_in_a_small_world_and_every_state_has_a_sentence_that_is_true(name):
    model = model_of(SMALL[name])
    report = explore(model)
    assert not report.broken, report
    if isinstance(model, Jobs):
        assert words_of(model) & {Stand.SUCCEEDED, Stand.CANCELLED, Stand.FAILED}


# Those that take a processor five seconds and more.
DEAR = {
    "copies",
    "pauses and a timer",
    "signal against timer",
    "three children",
    "two of three are enough",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in DEAR else name for name in LARGE]
)
def test_every_promise_holds_in_a_large_world(name):
    floor, shape = LARGE[name]
    report = explore(model_of(shape))
    sys.stdout.write(f"{name}: {report}\n")
    assert not report.broken, report
    assert report.states >= floor, "the world has become smaller than this file says"


def test_the_large_worlds_have_half_a_million_states_together():
    assert sum(floor for floor, _shape in LARGE.values()) >= 500_000


def test_a_broken_promise_is_told_as_the_shortest_way_to_it():
    shape = Shape((("wait", "a"), ("return",)), SMALL["wait"].messages)
    silent = next(mutant for mutant in known() if mutant.name.startswith("deliver: it is stored"))
    report = explore(model_of(shape, Rules(load(silent.changed()))))
    assert "a wake-up was lost" in report.broken
    assert report.trace == ("claim 0 0", "run 0 0", "write 0 0 suspended", "deliver 0 KEPT")


def test_an_effect_whose_caller_may_still_be_on_its_way_cannot_be_called_once_by_a_probe_alone():
    """A call outside cannot be fenced: that is why every call of an effect carries the same key."""
    shape: Any = SMALL["effect"]
    slow = shape._replace(zombies=1)
    assert "was called 2 times" in explore(model_of(slow)).broken
