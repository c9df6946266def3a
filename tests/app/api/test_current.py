"""A running step can ask about its job, and stop when that is to end; the workflow cleans up then."""

from __future__ import annotations

import threading

import pytest

from tallystick import Cancelled, JobCancelled, OutsideWorkflow, aio, current
from tests.patience import wait_until


def test_a_workflow_and_its_steps_know_their_job(app):
    @app.step
    def mine() -> str:
        return current().job_id

    @app.tx
    def mine_in_a_transaction(_db) -> str:
        return current().job_id

    @app.workflow
    def flow() -> list[str]:
        assert not current().cancelled
        current().raise_if_cancelled()
        return [current().job_id, mine(), mine_in_a_transaction()]

    with app.worker():
        job = flow.submit()
        assert job.result(10) == [job.id] * 3


def test_an_async_workflow_and_its_steps_know_their_job(app):
    @app.step
    async def mine() -> str:
        return current().job_id

    @app.step
    def mine_in_a_thread() -> str:
        return current().job_id

    @app.workflow
    async def flow() -> list[str]:
        return [current().job_id, await mine(), await mine_in_a_thread.aio()]

    with app.worker():
        job = flow.submit()
        assert job.result(10) == [job.id] * 3


def test_outside_of_a_job_there_is_nothing_to_ask_about(app):
    with pytest.raises(OutsideWorkflow, match=r"current\(\) was called where no job runs"):
        current()
    with app.transaction(), pytest.raises(OutsideWorkflow):
        current()


@pytest.mark.parametrize("limit", [None, "1m"])
def test_a_running_step_stops_when_its_job_is_cancelled_and_the_workflow_cleans_up(app, limit):
    begun = threading.Event()
    seen: list[object] = []

    @app.step(timeout=limit)
    def copy() -> None:
        begun.set()
        wait_until(lambda: current().cancelled)
        current().raise_if_cancelled()
        seen.append("never")

    @app.step
    def remove() -> None:
        current().raise_if_cancelled()
        seen.append(("removed", current().cancelled))

    @app.workflow
    def flow() -> None:
        try:
            copy()
        except Cancelled:
            remove()
            raise

    with app.worker():
        job = flow.submit()
        assert begun.wait(10)
        assert job.cancel(grace="1m") == "CANCELLING"
        with pytest.raises(JobCancelled):
            job.result(10)
    assert seen == [("removed", True)]
    assert [event.name for event in job.history()] == ["submit", "claim", "step", "cancel"]


def test_a_sync_step_of_an_async_workflow_stops_too(app):
    begun = threading.Event()

    @app.step
    def copy() -> None:
        begun.set()
        wait_until(lambda: current().cancelled)
        current().raise_if_cancelled()

    @app.workflow
    async def flow() -> None:
        await copy.aio()
        await aio.sleep("1d")

    with app.worker():
        job = flow.submit()
        assert begun.wait(10)
        job.cancel(grace="1m")
        with pytest.raises(JobCancelled):
            job.result(10)
