"""A few seconds of `make chaos` on each store, with a fixed seed."""

from __future__ import annotations

import pytest

from tests.chaos.run import Run, last_line, report

# The nemeses of the suite. `make chaos` has all of them.
IN_SUITE = {
    "sqlite": ("kill one", "kill all", "freeze", "disk full", "i/o error", "clock"),
    "postgres": (
        "kill one",
        "kill all",
        "freeze",
        "restart",
        "terminate",
        "cut",
        "lost commit",
        "cancel",
        "clock",
    ),
}
SECONDS = 7.0


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("store", IN_SUITE)
def test_a_crew_at_work_loses_doubles_and_forgets_nothing(store: str):
    outcome = Run(store, SECONDS, "in the suite", IN_SUITE[store]).go()
    report(outcome)
    assert not outcome.invalid
    assert outcome.verdict.clean, last_line([outcome])
    assert not outcome.folder.exists(), "nothing is left behind by a clean run"
