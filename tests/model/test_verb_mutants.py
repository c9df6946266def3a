"""A share of the guards of the verbs, each taken away: a small world or a random picture misses it."""

from __future__ import annotations

import sys
from zlib import crc32

import pytest

from tests.model.judging import judge_verb
from tests.model.mutants import verb_mutants

PARTS = 4
# All of them take half an hour of a processor: `python -m tests.model`.
SHARE = 17

NOT_MISSED = {
    "release: without `request.hold`": "no world holds a job by releasing it; conformance does",
    "deliver: always `named is None`": "worlds deliver signals alone; conformance delivers a timer",
}
"""Guards of the share that neither misses, and why."""


def share():
    """Return the same mutants whatever others come and go."""
    return [mutant for mutant in verb_mutants() if crc32(mutant.name.encode()) % SHARE == 0]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_guard_of_a_verb_that_is_removed_is_missed(part):
    caught = [judge_verb(mutant) for mutant in share()[part::PARTS] if mutant.name not in NOT_MISSED]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    assert not [one.mutant for one in caught if not one.by]


def test_what_is_not_missed_is_still_there():
    assert {mutant.name for mutant in share()} >= set(NOT_MISSED)
