"""What woke a job may come before its function has been left: in one process it goes on after that."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import aio, wait
from tests.patience import wait_until


class Door:
    """Opened and shut around a wait; the first time it is shut slowly."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.shutting = threading.Event()
        self.let_go = threading.Event()

    def __enter__(self) -> None:
        self.log.append("open")

    def __exit__(self, *exc: object) -> None:
        self.shutting.set()
        assert self.let_go.wait(30)
        self.log.append("shut")

    async def __aenter__(self) -> None:
        self.log.append("open")

    async def __aexit__(self, *exc: object) -> None:
        self.shutting.set()
        assert await asyncio.to_thread(self.let_go.wait, 30)
        self.log.append("shut")


@pytest.fixture
def door():
    return Door()


def declared(app, door, colour):
    if colour == "sync":

        @app.workflow
        def flow() -> str:
            with door:
                return wait("go", str)

        return flow

    @app.workflow
    async def aflow() -> str:
        async with door:
            return await aio.wait("go", str)

    return aflow


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_job_that_is_woken_while_its_function_is_left_goes_on_after_that(app, door, colour):
    flow = declared(app, door, colour)
    with app.worker(concurrency=4):
        worker = app.runtime().worker
        job = flow.submit()
        assert door.shutting.wait(30)
        job.send("go", "on")
        wait_until(lambda: len(worker._behind) == 1)
        assert door.log == ["open"]
        door.let_go.set()
        assert job.result(30) == "on"
        assert not worker._behind
    assert door.log == ["open", "shut", "open", "shut"]


def test_a_worker_that_stops_meanwhile_gives_the_job_back(app, door):
    flow = declared(app, door, "sync")
    # A fifth of the grace is left to give the job back, which takes a busy machine a while.
    with app.worker(concurrency=4, grace="2s"):
        worker = app.runtime().worker
        job = flow.submit()
        assert door.shutting.wait(30)
        job.send("go", "on")
        wait_until(lambda: len(worker._behind) == 1)
        stopping = threading.Thread(target=app.runtime().stop_worker)
        stopping.start()
        wait_until(lambda: all(segment.lost for segment in worker.running.values()))
        door.let_go.set()
        stopping.join()
    with app.worker():
        assert job.result(30) == "on"
    assert door.log.count("open") == door.log.count("shut")
