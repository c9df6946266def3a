"""How much Python a unit of work runs has a budget: it holds the speed where no clock can."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench import bytecodes

# As measured, and a tenth more: what shares a flush is chance. Raise one only with the reason in the commit.
BUDGET = {
    "a submission": 3_280,
    "a job of one step": 4_700,
    "a step more": 1_500,
    "a child": 5_900,
    "a wait and its signal": 27_000,
}
TRIES = 3


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="another Python has other bytecodes")
def test_no_unit_of_work_runs_more_python_than_its_budget():
    """A busy machine splits flushes and adds to the counts, so a unit has three tries to stay below."""
    above = BUDGET
    for _ in range(TRIES):
        program = (sys.executable, bytecodes.__file__)
        counted = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
        assert counted.keys() == BUDGET.keys()
        above = {unit: counted[unit] for unit in above if counted[unit] > BUDGET[unit]}
        if not above:
            return
    assert above == {}
