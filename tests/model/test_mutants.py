"""Removing any single guard, of a decision function or of a bundle, is caught by a small world."""

from __future__ import annotations

import sys
from zlib import crc32

import pytest

from tests.model.judging import Judges
from tests.model.mutants import GUARDED, KNOWN, OF_BUNDLES, Mutant, all_mutants

PARTS = 2
# All of them: the long tests, and `python -m tests.model`.
SHARE = 6


def missed(mutants: list[Mutant]) -> list[str]:
    """Return the mutants that no small world catches, and print who catches each."""
    judges = Judges()
    caught = [judges.judge(mutant) for mutant in mutants]
    sys.stdout.writelines(f"{one}\n" for one in caught)
    return [one.mutant for one in caught if not one.by]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_guard_that_is_removed_is_missed(part):
    """A share of the guards, which is the same whatever others come and go."""
    share = [mutant for mutant in all_mutants() if crc32(mutant.name.encode()) % SHARE == 0]
    assert not missed(share[part::PARTS])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_guard_that_is_removed_is_missed():
    assert not missed(all_mutants())


def test_every_decision_function_and_every_guard_of_a_bundle_has_mutants():
    names = [mutant.name for mutant in all_mutants()]
    functions = {function for some in GUARDED.values() for function in some}
    # A function without a branch has nothing to take away, and is in the list of known mistakes instead.
    assert functions <= {name.split(":")[0] for name in names}
    assert len(names) >= 162
    assert sum(name.startswith("bundle:") for name in names) == len(OF_BUNDLES)
    assert {module for _name, module, _old, _new in KNOWN} >= {"waiting", "children", "endings", "settling"}
