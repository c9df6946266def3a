"""What a killed worker had in hand is taken up together; one that kills its workers takes nobody with it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.app.programs.takeover import LEASE_SECONDS, SLOTS, declare
from tests.patience import wait_until


class Process:
    """A worker process, and another one when it has died."""

    def __init__(self, url, folder):
        self._command = [sys.executable, "-m", "tests.app.programs.takeover", url, str(folder)]
        self.start()

    def start(self):
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def replace_if_dead(self):
        if self._process.poll() is not None:
            self.start()

    def kill(self):
        self._process.kill()
        self._process.wait(30)


@pytest.fixture
def process(app, url, tmp_path):
    app.runtime()
    made = Process(url, tmp_path)
    yield made
    made.kill()


def asked(app, query):
    with app.connect() as db:
        return db.execute(query)


@pytest.mark.slow
def test_as_many_jobs_as_a_worker_has_slots_are_done_soon_after_it_was_killed(app, tmp_path, process):
    (tmp_path / "hang").touch()
    second, _poison = declare(app, tmp_path)
    jobs = second.submit_many([()] * SLOTS)
    wait_until(
        lambda: asked(app, "SELECT count(*) FROM attempts WHERE status = 'IN_PROGRESS'") == [(SLOTS,)],
        "all of them run",
    )
    process.kill()
    killed = time.monotonic()
    (tmp_path / "hang").unlink()
    process.start()
    for job in jobs:
        job.result(60)
    assert time.monotonic() - killed < LEASE_SECONDS + 10
    assert asked(app, "SELECT reason, count(*) FROM attempts WHERE charged > 0 GROUP BY reason") == [
        ("EXPIRED", SLOTS)
    ]


@pytest.mark.slow
def test_a_job_that_kills_its_worker_every_time_ends_alone(app, tmp_path, process):
    second, poison = declare(app, tmp_path)
    bad, *good = [poison.submit(), *(second.submit() for _ in range(8))]

    def all_over():
        process.replace_if_dead()
        return all(job.row().completed_at for job in [bad, *good])

    wait_until(all_over, "all of them have ended")
    assert bad.row().error_code == "ATTEMPTS_SPENT"
    assert {job.state() for job in good} == {"SUCCEEDED"}
    lost = dict(asked(app, "SELECT job_id, count(*) FROM attempts WHERE charged > 0 GROUP BY job_id"))
    assert lost.pop(bad.id) == 3
    assert max(lost.values()) < 3
