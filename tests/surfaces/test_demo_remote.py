"""The demo of remote workers shows an outbox, a dead worker, a late report that is refused, and the books."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_of_remote_workers_ends_with_books_that_balance():
    done = subprocess.run(
        [sys.executable, "-m", "demo.remote"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 PENDING" in done.stdout
    assert "attempt 2 was done by bob" in done.stdout
    assert "409 STALE" in done.stdout
    assert "12 of 12 pages read once, 1 late report refused, 0 findings" in done.stdout
