"""A share of the guards of the verbs, each taken away: a small world or a random picture misses it."""

from __future__ import annotations

import ast
import sys
from functools import partial
from zlib import crc32

import pytest

from tests.model.judging import LOOKS, Judges
from tests.model.mutants import VERBS, Mutant, verb_mutants
from tests.model.rules import source

PARTS = 4
# All of them take half an hour of a processor: `python -m tests.model`.
SHARE = 17


def share():
    """Return the same mutants whatever others come and go."""
    return [mutant for mutant in verb_mutants() if crc32(mutant.name.encode()) % SHARE == 0]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_guard_of_a_verb_that_is_removed_is_missed(part):
    judges = Judges()
    caught = [judges.judge_verb(mutant) for mutant in share()[part::PARTS]]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    assert not [one.mutant for one in caught if not one.by]


@pytest.mark.parametrize("module", VERBS)
def test_a_module_that_is_made_again_and_not_changed_is_caught_by_nobody(module):
    """If it were, all would be: a module that decides is missing among those that are made again."""
    same = Mutant("nothing", module, partial(ast.parse, source(module)), frozenset())
    assert not Judges().judge(same, LOOKS[:1]).by
