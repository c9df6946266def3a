"""Whoever waits for a job learns of its end, also in the process whose function for it does not return."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import JobCancelled, Tally
from tests.patience import wait_until

PATIENCE = 30


def by_thread(job):
    return job.result(PATIENCE)


def by_task(job):
    async def awaited():
        return await asyncio.wait_for(job, PATIENCE)

    return asyncio.run(awaited())


waiting = pytest.mark.parametrize("waits", [by_thread, by_task])


@pytest.fixture
def other(url):
    tally = Tally(url)
    yield tally
    tally.close()


@pytest.fixture
def stuck(app):
    """A job whose function here has begun and does not return, and what lets it go."""
    begun, go = threading.Event(), threading.Event()

    @app.workflow
    def flow() -> int:
        begun.set()
        go.wait(PATIENCE * 2)
        return 1

    with app.worker(lease="9s", concurrency=1):
        job = flow.submit()
        assert begun.wait(PATIENCE)
        yield job
        go.set()


@waiting
def test_a_job_that_is_ended_by_force_elsewhere(stuck, other: Tally, waits):
    with other.worker(lease="1s"):
        other.job(stuck.id).cancel(grace="0.2s")
        with pytest.raises(JobCancelled):
            waits(stuck)


@waiting
def test_a_job_that_another_process_has_taken_over_and_finished(stuck, other: Tally, waits):
    @other.workflow
    def flow() -> int:
        return 7

    with other.transaction() as db:
        db.execute("UPDATE attempts SET lease_expires_at = 1")
    with other.worker(lease="1s"):
        wait_until(lambda: other.job(stuck.id).state() == "SUCCEEDED", "its end")
        assert waits(stuck) == 7
