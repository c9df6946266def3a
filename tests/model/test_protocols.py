"""Every promise about protocol jobs holds in every reachable state, and each ends without a further report.

The worlds have one, two and three steps, two relays, the sweep, cancellations with and without force, and
remote workers that report anything at any time. Larger ones: `python -m tests.model`.
"""

from __future__ import annotations

import sys
from zlib import crc32

import pytest

from tests.model.judging import judge_protocol
from tests.model.protocol_rules import KNOWN, NOT_SEEN, load, mutants, of_every_guard
from tests.model.protocols import ProtocolWorld, Shape
from tests.model.search import explore

WORLDS = {
    "one step, pushed": (36_000, Shape(1)),
    "one step, pushed by any relay": (30_000, Shape(1, relays=False)),
    "one step, pulled": (220, Shape(1, pull=True)),
    "two steps, pushed": (63_000, Shape(2, again=1)),
    "two steps, pulled": (1_800, Shape(2, pull=True)),
    "one step, pushed and held": (13_000, Shape(1, again=1, holds=True)),
    "two steps, pulled and held": (2_500, Shape(2, pull=True, holds=True)),
    "three steps, pushed": (68_000, Shape(3, again=0)),
    "three steps, pulled": (900, Shape(3, pull=True, again=1)),
}
PARTS = 4
# All guards: the long tests, and `python -m tests.model`.
SHARE = 12

DEAR = {"one step, pushed by any relay", "three steps, pushed"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in DEAR else name for name in WORLDS]
)
def test_every_promise_holds_in_every_state(name):
    floor, shape = WORLDS[name]
    report = explore(ProtocolWorld(load(), shape))
    sys.stdout.write(f"{name}: {report}\n")
    assert not report.broken, report
    assert report.states >= floor, "the world has become smaller than this file says"


def test_the_worlds_of_every_run_have_a_hundred_thousand_states_together():
    assert sum(floor for name, (floor, _shape) in WORLDS.items() if name not in DEAR) >= 100_000


def test_a_guard_that_is_removed_is_missed():
    """A share of them, which is the same whatever others come and go."""
    share = [mutant for mutant in mutants() if crc32(mutant.name.encode()) % SHARE == 0]
    assert not [mutant.name for mutant in share if not judge_protocol(mutant).by]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_guard_that_is_removed_is_missed(part):
    assert not [mutant.name for mutant in mutants()[part::PARTS] if not judge_protocol(mutant).by]


def test_every_rule_that_the_search_needs_has_a_mutant():
    names = [name for name, *_change in KNOWN]
    for rule in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13):
        assert [name for name in names if name.startswith(f"rule {rule}: ")], rule


def test_what_is_not_seen_is_still_there():
    assert {mutant.name for mutant in of_every_guard()} >= set(NOT_SEEN)
