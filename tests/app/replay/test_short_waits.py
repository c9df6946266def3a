"""A wait that ends within 200 ms does not unwind its workflow; one that does not is put away as ever."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Cancelled, JobCancelled, aio, sleep, wait
from tallystick.testing.stepping import is_at_rest
from tests.patience import wait_until


def names(job) -> list[str]:
    return [event.name for event in job.history()]


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_short_sleep_and_a_short_timeout_hold_the_segment(app, colour):
    begun = []

    @app.workflow
    def sync() -> int | None:
        begun.append(1)
        sleep("50ms")
        return wait("never", int, timeout="50ms")

    @app.workflow(name="async")
    async def colourful() -> int | None:
        begun.append(1)
        await aio.sleep("50ms")
        return await aio.wait("never", int, timeout="50ms")

    with app.worker():
        job = {"sync": sync, "async": colourful}[colour].submit()
        assert job.result(20) is None
    assert begun == [1]
    assert names(job) == ["submit", "claim", "sleep", "wait", "return"]


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_signal_that_comes_at_once_is_taken_without_unwinding(app, colour):
    begun = []

    @app.workflow
    def sync() -> int:
        begun.append(1)
        return wait("go", int)

    @app.workflow(name="async")
    async def colourful() -> int:
        begun.append(1)
        return await aio.wait("go", int)

    with app.worker():
        # One that arrives before the segment lingers, or while it does: a loaded machine may be too slow for
        # one of them, and never for all.
        for _ in range(20):
            begun.clear()
            job = {"sync": sync, "async": colourful}[colour].submit()
            wait_until(lambda: begun)
            job.send("go", 7)
            assert job.result(20) == 7
            if begun == [1]:
                break
    assert names(job) == ["submit", "claim", "wait", "return"]


def test_a_job_whose_signal_does_not_come_is_put_away_although_its_worker_is_idle(app):
    @app.workflow
    def flow() -> int:
        return wait("go", int)

    with app.worker():
        job = flow.submit()
        wait_until(lambda: names(job)[-1] == "suspend")
        wait_until(lambda: is_at_rest(app))
        job.send("go", 1)
        assert job.result(20) == 1


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_cancellation_ends_the_lingering_and_not_the_grace(app, colour):
    """The cancellation is met at the wait; nobody waits out the grace of half a minute."""
    met = []

    @app.workflow
    def sync() -> None:
        try:
            wait("never", int)
        except Cancelled:
            met.append(1)
            raise

    @app.workflow(name="async")
    async def colourful() -> None:
        try:
            await asyncio.gather(aio.wait("a", int), aio.wait("b", int))
        except Cancelled:
            met.append(1)
            raise

    with app.worker(lease="60s"):
        for _ in range(5):
            job = {"sync": sync, "async": colourful}[colour].submit()
            wait_until(lambda job=job: len(names(job)) >= 2)
            job.cancel()
            with pytest.raises(JobCancelled):
                job.result(20)
            assert job.state() == "CANCELLED"
