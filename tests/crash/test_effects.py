"""Crash cases around a charge at a real provider: none twice, none that the books deny, none stuck."""

from __future__ import annotations

import re

import pytest

from tallystick.store.crash_points import EFFECTS
from tests.crash.fresh import python

POINTS = 2 * len(EFFECTS)
# Both cases that break the promise show the double, and a provider that dedupes does not.
CONTROLS = "controls=[2, 2, 1]"


def run(store: str, cases: int, seconds: float) -> None:
    """Run so many cases, and judge what is said of them."""
    about = ("--store", store, "--cases", str(cases), "--seed", "make-test")
    answer = python("-m", "tests.crash.effects", *about, seconds=seconds)
    said = answer.stdout.splitlines()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert said[-2] == f"effects: store={store} {CONTROLS}"
    wrong = "doubles=0 denied=0 invented=0 stuck=0"
    figures = re.fullmatch(rf"effects: cases={cases} points={POINTS} kills=(\d+) {wrong}", said[-1])
    assert figures
    # Half of the cases kill a worker, and so does every point.
    assert int(figures[1]) >= cases // 2 + POINTS


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_moment_of_a_call_once():
    run("sqlite", 12, 200)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_two_thousand_cases(store):
    run(store, 2_000, 3_500)
