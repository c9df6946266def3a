"""The tour that `make demo` gives is quick, clean and true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "scripts" / "demo"


@pytest.fixture(scope="module")
def tour():
    return subprocess.run(
        [sys.executable, DEMO.with_suffix(".py")],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )


def test_the_tour_ends_well_and_complains_of_nothing(tour):
    assert (tour.returncode, tour.stderr) == (0, "")
    assert os.access(DEMO, os.X_OK)


def test_a_worker_is_killed_before_and_after_every_durable_write(tour):
    deaths = re.findall(r"kill -9 (before|after) ([a-z]+(?: \w+)*?) +\d{15} ", tour.stdout)
    names = [name for when, name in deaths if when == "before"]
    assert names == ["leg 1 entry", "leg 1", "leg 2 entry", "step 1", "step 2", "step 3", "acknowledge"]
    assert deaths == [(when, name) for name in names for when in ("before", "after")]
    assert f"{len(deaths)} crashes" in tour.stdout


def test_it_is_in_colour_only_where_that_is_wanted(tour):
    assert "\x1b[" not in tour.stdout
