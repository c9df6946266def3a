"""Guards of effects and of ends of remote steps, each taken away: an answer is not what the table says."""

from __future__ import annotations

import sys
from zlib import crc32

import pytest

from tests.model.judging import judge_effect, judge_remote
from tests.model.mutants import EFFECTS, REMOTE, effect_mutants, remote_mutants

# All guards of effects: `python -m tests.model`, and the long tests.
SHARE = 4


def missed(judge, mutants) -> list[str]:
    caught = [judge(mutant) for mutant in mutants]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    return [one.mutant for one in caught if not one.by]


def test_a_guard_of_an_effect_that_is_removed_is_missed():
    share = [each for each in effect_mutants() if crc32(each.name.encode()) % SHARE == 0]
    assert not missed(judge_effect, share)


@pytest.mark.long
def test_every_guard_of_an_effect_that_is_removed_is_missed():
    assert not missed(judge_effect, effect_mutants())


def test_every_guard_of_how_remote_steps_end_that_is_removed_is_missed():
    assert not missed(judge_remote, remote_mutants())


def test_every_function_that_is_judged_by_answers_has_mutants():
    assert len(effect_mutants()) >= 145
    assert len(remote_mutants()) >= 20
    names = {mutant.name.split(":")[0] for mutant in remote_mutants()}
    assert names == set(REMOTE["remote"])
    assert {mutant.module for mutant in effect_mutants()} == set(EFFECTS)
