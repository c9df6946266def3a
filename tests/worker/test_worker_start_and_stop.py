"""Functions around a worker: called before its first claim and after its last segment, in its own colours."""

from __future__ import annotations

import asyncio
import threading

import pytest


def test_they_run_before_the_first_job_and_after_the_last(app):
    seen = []

    @app.step
    def work() -> None:
        seen.append("work")

    @app.workflow
    def flow() -> None:
        work()

    @app.on_worker_start
    def open_pool() -> None:
        seen.append("open")

    @app.on_worker_start
    def warm_up() -> None:
        seen.append("warm")

    @app.on_worker_stop
    def close_pool() -> None:
        seen.append("close")

    @app.on_worker_stop
    def say_goodbye() -> None:
        seen.append("goodbye")

    job = flow.submit()
    with app.worker():
        job.result(20)
        assert "close" not in seen
    assert seen == ["open", "warm", "work", "goodbye", "close"]
    with app.worker():
        pass
    assert seen[5:] == ["open", "warm", "goodbye", "close"]


def test_async_ones_run_on_the_loop_of_the_workflows(app):
    loops = {}

    @app.on_worker_start
    async def begin() -> None:
        loops["start"] = asyncio.get_running_loop()

    @app.on_worker_stop
    async def end() -> None:
        loops["stop"] = asyncio.get_running_loop()

    @app.workflow
    async def flow() -> None:
        loops["job"] = asyncio.get_running_loop()

    with app.worker():
        flow.submit().result(20)
    assert loops["start"] is loops["job"] is loops["stop"]


def test_a_worker_whose_start_fails_claims_nothing(app):
    @app.workflow
    async def flow() -> int:
        return 1

    @app.on_worker_start
    def fail() -> None:
        if not mended:
            raise OSError("no pool")

    mended = []
    job = flow.submit()
    before = threading.active_count()
    with pytest.raises(OSError, match="no pool"), app.worker():
        pass
    assert threading.active_count() <= before
    assert job.state() == "QUEUED"
    mended.append(1)
    with app.worker():
        assert job.result(20) == 1


def test_one_that_fails_at_the_end_keeps_no_other_from_being_called(app, caplog):
    seen = []

    @app.on_worker_stop
    def second() -> None:
        seen.append("second")

    @app.on_worker_stop
    def first() -> None:
        raise OSError("already closed")

    with app.worker():
        pass
    assert seen == ["second"]
    assert "first failed" in caplog.text
