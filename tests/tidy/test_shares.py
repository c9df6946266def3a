"""Digits, faults and refusals run on both stores in `make test`: no share of them is left out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import WHOLE
from tests.tidy.tree import ROOT

COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]


def collected(*more: str) -> list[str]:
    ended = subprocess.run([*COLLECT, *more, *WHOLE], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(line for line in ended.stdout.splitlines() if "::" in line and "postgres" in line)


@pytest.mark.slow
def test_what_is_not_shared_out_is_there_with_and_without_a_share():
    whole = collected()
    assert len(whole) >= 100
    assert collected("--share") == whole
