"""Stopping a worker: what it has taken comes to its end, and nobody waits longer than that takes."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tallystick import Tally
from tests.patience import wait_until


@pytest.fixture
def app(tmp_path):
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")
    yield app
    app.close()


def test_a_claim_on_its_way_when_the_worker_stops_is_waited_for(app):
    """Otherwise the job it brings would be nobody's until its lease has run out."""

    @app.workflow
    def quick() -> str:
        return "done"

    runtime = app.runtime()
    with app.worker():
        worker = runtime.worker
        asking = threading.Event()
        held = []
        put = runtime.committer.put

        def slow_put(items):
            held.append(items)
            asking.set()

        wait_until(lambda: worker.idle)
        runtime.committer.put = slow_put
        worker.poke()
        assert asking.wait(30)
        runtime.committer.put = put
        runtime.worker = None
        job = quick.submit()
        runtime.worker = worker
        stopped = []
        stopper = threading.Thread(target=lambda: stopped.append(runtime.stop_worker()))
        stopper.start()
        stopper.join(0.05)
        assert stopper.is_alive()
        for items in held:
            put(items)
        stopper.join(30)
    assert stopped == [True]
    assert job.state() == "SUCCEEDED"


def test_a_worker_of_async_jobs_stops_as_soon_as_they_have_ended(app):
    gate = asyncio.Event()
    loops = []
    began = threading.Event()

    @app.workflow
    async def waits() -> str:
        loops.append(asyncio.get_running_loop())
        began.set()
        await gate.wait()
        return "done"

    runtime = app.runtime()
    with app.worker(grace="10m"):
        job = waits.submit()
        assert began.wait(30)
        stopper = threading.Thread(target=runtime.stop_worker)
        stopper.start()
        loops[0].call_soon_threadsafe(gate.set)
        stopper.join(30)
        assert not stopper.is_alive()
    assert job.state() == "SUCCEEDED"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_worker_whose_step_does_not_return_stops_after_one_grace(app, is_async):
    """Two of them, or five seconds for a loop that is blocked, were paid before."""
    begun, go = threading.Event(), threading.Event()

    def stands() -> None:
        begun.set()
        go.wait(60)

    if is_async:

        @app.workflow
        async def flow() -> None:
            stands()
    else:

        @app.workflow
        def flow() -> None:
            stands()

    runtime = app.runtime()
    with app.worker(grace="2s"):
        flow.submit()
        assert begun.wait(30)
        before = time.monotonic()
        assert not runtime.stop_worker()
        took = time.monotonic() - before
        go.set()
    assert 1.9 <= took < 3.5


def test_in_the_last_part_of_the_grace_a_job_is_given_back(app):
    begun = threading.Event()

    @app.step
    def work() -> int:
        return 1

    @app.workflow
    def flow() -> int:
        begun.set()
        wait_until(is_lost)
        return work()

    def is_lost() -> bool:
        return all(segment.lost for segment in runtime.worker.running.values())

    runtime = app.runtime()
    with app.worker(grace="2s"):
        job = flow.submit()
        assert begun.wait(30)
        assert runtime.stop_worker()
    assert job.view() == "PENDING"
