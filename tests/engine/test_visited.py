"""How many files of the package a reader has to follow for one step, and for a wait with its signal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.testing.postgres_server import Server
from tests.postgres.subject import fresh_schema

SCRIPT = Path(__file__).parents[2] / "scripts" / "visited.py"
STEP_FILES_MAX = 25
WAIT_FILES_MAX = 40


def files_visited(*url: str) -> dict[str, int]:
    """Return what the script prints: how many files each act visits every time."""
    told = subprocess.run((sys.executable, SCRIPT, *url), capture_output=True, text=True, check=True).stdout
    return {act: int(count) for act, count in re.findall(r"^(.+) on \w+: (\d+) files", told, re.MULTILINE)}


@pytest.mark.slow
def test_a_step_visits_few_files():
    assert 0 < files_visited()["a step"] <= STEP_FILES_MAX


@pytest.mark.slow
def test_a_wait_and_its_signal_visit_few_files(server: Server):
    assert 0 < files_visited(server.url(schema=fresh_schema()))["a wait and its signal"] <= WAIT_FILES_MAX
