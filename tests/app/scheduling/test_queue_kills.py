"""Several processes, killed again and again: at no moment do more functions run than the queue allows."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from tallystick import Tally
from tallystick.testing.stepping import check_books, count_jobs
from tests.app.programs.limited import CONCURRENCY, PER_KEY, declare, running

KEYS = 5
KILL_SECONDS = 1.5


class Processes:
    """Workers of one store."""

    def __init__(self, url: str, folder: Path, number: int) -> None:
        self._command = [sys.executable, "-m", "tests.app.programs.limited", url, str(folder)]
        self._living = [subprocess.Popen(self._command) for _ in range(number)]

    def kill_one(self) -> None:
        """Kill one of them with -9, and start another in its place."""
        victim = self._living.pop(random.randrange(len(self._living)))
        victim.kill()
        victim.wait()
        self._living.append(subprocess.Popen(self._command))

    def end(self) -> None:
        """Kill all of them."""
        for process in self._living:
            process.kill()
            process.wait()


def watched(url: str, folder: Path, jobs: int, processes: int, kills: int) -> int:
    """Run jobs to their ends among kills, and return the largest number that was seen to run at once."""
    app, locks = Tally(url), folder / "locks"
    locks.mkdir()
    mail = declare(app, locks)
    submitted = [mail.opts(limit_key=f"k{n % KEYS}").submit(f"k{n % KEYS}-{n}") for n in range(jobs)]
    peak, samples = 0, 0
    with ExitStack() as stack:
        stack.callback(app.close)
        crowd = Processes(url, locks, processes)
        stack.callback(crowd.end)
        kill_at, until = time.monotonic() + KILL_SECONDS, time.monotonic() + 300
        while count_jobs(app).get("SUCCEEDED", 0) < jobs:
            now = running(locks)
            samples += 1
            peak = max(peak, len(now))
            assert len(now) <= CONCURRENCY, now
            assert max(Counter(name.partition("-")[0] for name in now).values(), default=0) <= PER_KEY, now
            if kills and time.monotonic() > kill_at:
                crowd.kill_one()
                kills -= 1
                kill_at = time.monotonic() + KILL_SECONDS
            assert time.monotonic() < until, count_jobs(app)
        assert check_books(app) == []
        assert samples > 10
        assert {job.state() for job in submitted} == {"SUCCEEDED"}
    return peak


@pytest.mark.slow
def test_no_more_functions_run_at_once_than_the_limits_of_their_queue_say(url, tmp_path):
    assert watched(url, tmp_path, jobs=60, processes=3, kills=2) >= 2


@pytest.mark.long
def test_no_more_functions_run_at_once_in_eight_processes_among_many_kills(url, tmp_path):
    assert watched(url, tmp_path, jobs=1_500, processes=8, kills=25) == CONCURRENCY
