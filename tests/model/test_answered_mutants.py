"""Guards of effects, each taken away: an answer is not what the table says."""

from __future__ import annotations

import sys
from zlib import crc32

import pytest

from tests.model.judging import judge_effect
from tests.model.mutants import effect_mutants

# All guards of effects: `python -m tests.model`, and the long tests.
SHARE = 4


def missed(mutants) -> list[str]:
    caught = [judge_effect(mutant) for mutant in mutants]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    return [one.mutant for one in caught if not one.by]


def test_a_guard_of_an_effect_that_is_removed_is_missed():
    assert not missed([each for each in effect_mutants() if crc32(each.name.encode()) % SHARE == 0])


@pytest.mark.long
def test_every_guard_of_an_effect_that_is_removed_is_missed():
    assert not missed(effect_mutants())


def test_every_function_about_effects_has_mutants():
    assert len(effect_mutants()) >= 175
