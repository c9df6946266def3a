"""Removing any single guard, of a decision function or of a bundle, is caught by a small world."""

from __future__ import annotations

import sys

import pytest

from tests.model.judging import judge
from tests.model.mutants import GUARDED, KNOWN, NOT_SEEN, OF_BUNDLES, all_mutants, of_module

PARTS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_every_guard_that_is_removed_is_missed(part):
    caught = [judge(mutant) for mutant in all_mutants()[part::PARTS]]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    assert not [one.mutant for one in caught if not one.by]


def test_every_decision_function_and_every_guard_of_a_bundle_has_mutants():
    names = [mutant.name for mutant in all_mutants()]
    functions = {function for some in GUARDED.values() for function in some}
    # A function without a branch has nothing to take away, and is in the list of known mistakes instead.
    assert functions <= {name.split(":")[0] for name in names}
    assert len(names) >= 134
    assert sum(name.startswith("bundle:") for name in names) == len(OF_BUNDLES)
    assert {module for _name, module, _old, _new in KNOWN} >= {"waiting", "children", "endings", "settling"}


def test_what_is_not_seen_is_still_there():
    mutants = (mutant for module, some in GUARDED.items() for mutant in of_module(module, some))
    assert {mutant.name for mutant in mutants} >= set(NOT_SEEN)
