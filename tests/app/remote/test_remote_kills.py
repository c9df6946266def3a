"""kill -9 before and after every commit of a job with remote steps: it ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books

PROGRAM = [sys.executable, "-m", "tests.app.programs.remote_steps"]


def run(url: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program to its end, or to its death at a named commit."""
    about = {**os.environ, "TALLYSTICK_CRASH_AT": crash_at} if crash_at else dict(os.environ)
    return subprocess.run(
        [*PROGRAM, url], env=about, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 13))
def test_a_process_that_dies_at_a_commit_loses_and_doubles_nothing(url, side, number):
    store = "sqlite" if url.startswith("sqlite") else "postgres"
    killed = run(url, f"{store}.commit.{side}:{number}")
    if killed.returncode == 0:
        pytest.skip(f"the whole job took fewer than {number} commits")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    ended = run(url)
    assert (ended.returncode, ended.stdout.strip()) == (0, "45"), ended.stderr
    app = Tally(url)
    try:
        assert check_books(app) == []
        with app.connect() as db:
            kept = db.execute("select name, occurrence, state, result from steps order by 1, 2")
            results = db.execute("select count(*) from messages where kind = 'result'")
            waiting = db.execute("select count(*) from outbox where state = 'PENDING'")
        rows = [tuple(row) for row in kept]
        picks = [("pick", 1, "SUCCEEDED", "4"), ("pick", 2, "SUCCEEDED", "5")]
        assert rows == [*picks, ("price", 1, "SUCCEEDED", "40")]
        assert (tuple(results[0]), tuple(waiting[0])) == ((2,), (0,))
    finally:
        app.close()
