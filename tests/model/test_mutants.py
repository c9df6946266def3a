"""Removing any single guard, of a decision function or of a bundle, is caught by a small world."""

from __future__ import annotations

import sys

import pytest

from tests.model.judging import Judges
from tests.model.mutants import GUARDED, KNOWN, OF_BUNDLES, all_mutants

PARTS = 12


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_guard_that_is_removed_is_missed(part):
    mutants, judges = all_mutants(), Judges()
    size = -(-len(mutants) // PARTS)
    caught = [judges.judge(mutant) for mutant in mutants[part * size : (part + 1) * size]]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    assert not [one.mutant for one in caught if not one.by]


def test_every_decision_function_and_every_guard_of_a_bundle_has_mutants():
    names = [mutant.name for mutant in all_mutants()]
    functions = {function for some in GUARDED.values() for function in some}
    # A function without a branch has nothing to take away, and is in the list of known mistakes instead.
    assert functions <= {name.split(":")[0] for name in names}
    assert len(names) >= 162
    assert sum(name.startswith("bundle:") for name in names) == len(OF_BUNDLES)
    assert {module for _name, module, _old, _new in KNOWN} >= {"waiting", "children", "endings", "settling"}
