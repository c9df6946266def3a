"""A deadline ends a job wherever it stands, and a grace is over when its time is: both by a timer."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tallystick import Cancelled, JobCancelled, gather, sleep, wait
from tallystick.errors import DeadlineExceeded
from tests.patience import let_time_pass, wait_until

SECONDS = 30


@pytest.fixture
def workflows(app):
    @app.workflow
    def waits() -> None:
        wait("never", bool)

    @app.workflow
    def sleeps() -> None:
        sleep("1d")

    @app.workflow
    def gathers() -> None:
        gather(waits.child())

    @app.workflow
    def queued() -> None: ...

    return {"waits": waits, "sleeps": sleeps, "gathers": gathers, "queued": queued.opts(queue="elsewhere")}


@pytest.mark.parametrize("what", ["queued", "waits", "sleeps", "gathers"])
def test_a_job_that_nobody_runs_is_cancelled_at_its_deadline(app, workflows, what):
    with app.worker():
        job = workflows[what].opts(deadline="300ms").submit()
        assert "it is cancelled at" in job.why()
        with pytest.raises(DeadlineExceeded, match="its deadline has passed") as passed:
            job.result(SECONDS)
        assert isinstance(passed.value, JobCancelled)
        row = job.row()
        assert (row.state, row.error_code) == ("CANCELLED", "DEADLINE")
        assert job.why().endswith("its deadline has passed")
        if what == "gathers":
            with app.connect() as db:
                code = f"select state, error_code from jobs where parent_job_id = '{job.id}'"
                wait_until(lambda: db.execute(code) == [("CANCELLED", "DEADLINE")], "its child has ended too")


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_running_job_may_clean_up_after_its_deadline(app, colour):
    cleaned = threading.Event()

    @app.step
    def work() -> None:
        let_time_pass(0.02)

    @app.step
    async def download() -> None:
        await asyncio.sleep(3_600)

    @app.workflow
    def sync() -> None:
        try:
            while True:
                work()
        except Cancelled:
            cleaned.set()
            raise

    @app.workflow(name="async")
    async def colourful() -> None:
        try:
            await download()
        except Cancelled:
            cleaned.set()
            raise

    with app.worker():
        job = {"sync": sync, "async": colourful}[colour].opts(deadline="200ms").submit()
        with pytest.raises(DeadlineExceeded):
            job.result(SECONDS)
        assert cleaned.is_set()
    assert job.row().error_code == "DEADLINE"


def test_a_grace_is_over_soon_after_its_time(app):
    begun, over = threading.Event(), threading.Event()

    @app.workflow
    def deaf() -> None:
        begun.set()
        over.wait(SECONDS)

    with app.worker():
        job = deaf.submit()
        assert begun.wait(SECONDS)
        asked = time.monotonic()
        assert job.cancel(grace="500ms") == "CANCELLING"
        wait_until(lambda: job.state() == "CANCELLED", "its grace is over")
        took = time.monotonic() - asked
        over.set()
    # 200 ms where nothing else runs; a sweep came after five seconds.
    assert 0.5 <= took < 2
