"""Opening, stopping and closing while others are at work: everybody is told, nothing waits for ever."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import tallystick.aio
from tallystick import Tx
from tallystick.errors import (
    BadDuration,
    BadInput,
    Misuse,
    NotFound,
    StoreMisused,
    TallyError,
)
from tallystick.testing.stepping import count_callers, count_jobs
from tests.patience import wait_until

SECONDS = 20


@pytest.fixture
def flow(app):
    @app.workflow
    def flow() -> int:
        return 1

    return flow


def test_whoever_waits_for_a_result_is_told_that_the_tally_was_closed(app, flow):
    job = flow.submit()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.result)
        wait_until(lambda: count_callers(app), "somebody waits")
        app.close()
        with pytest.raises(StoreMisused, match="was closed before job"):
            waiting.result(SECONDS)
    with app.worker():
        assert job.result(SECONDS) == 1


def test_whoever_awaits_a_job_or_a_submission_is_told_that_the_tally_was_closed(app, flow):
    async def main() -> None:
        job = await flow.submit_aio()
        waiting = asyncio.ensure_future(_result_of(job))
        await asyncio.sleep(0)
        submitting = asyncio.ensure_future(flow.submit_aio())
        await asyncio.sleep(0)
        await asyncio.to_thread(wait_until, lambda: count_callers(app), "it waits")
        app.close()
        with pytest.raises(StoreMisused):
            await asyncio.wait_for(waiting, SECONDS)
        with suppress(StoreMisused):  # it was on its way when the doors closed, or came too late
            await asyncio.wait_for(submitting, SECONDS)

    asyncio.run(main())


async def _result_of(job) -> object:
    return await job


@pytest.mark.parametrize("verb", ["result", "await", "submit_aio"])
def test_whoever_waits_in_a_fork_is_told_to_make_a_tally_there(app, flow, verb):
    job = flow.submit()
    child = os.fork()
    if child == 0:
        try:
            if verb == "result":
                job.result(SECONDS)
            else:
                asyncio.run(_result_of(job) if verb == "await" else flow.submit_aio())
        except StoreMisused:
            os._exit(7)
        finally:
            os._exit(1)
    _pid, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_loop_that_was_closed_silences_nobody_else(app):
    go = threading.Event()

    @app.step
    def waits() -> None:
        go.wait(SECONDS)

    @app.workflow
    def slow() -> int:
        waits()
        return 1

    with app.worker(), ThreadPoolExecutor(1) as pool:
        job = slow.submit()
        loop = asyncio.new_event_loop()
        said: list[str] = []
        loop.set_exception_handler(lambda _loop, about: said.append(about["message"]))
        abandoned = loop.create_task(_result_of(job))
        while not count_callers(app):
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        other = pool.submit(job.result, SECONDS)
        go.set()
        assert other.result(SECONDS) == 1
        assert slow.submit().result(SECONDS) == 1
    # Its task waits for ever, as every task of a closed loop does: that is said to the loop, and not printed.
    del abandoned
    gc.collect()
    assert said == ["Task was destroyed but it is pending!"]


def test_a_job_whose_submitter_was_cancelled_runs_all_the_same(app):
    @app.workflow(attempts=1)
    def flow() -> int:
        return 1

    async def main() -> None:
        submitting = asyncio.ensure_future(flow.submit_aio())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting

    with app.worker():
        asyncio.run(main())
        wait_until(lambda: count_jobs(app) == {"SUCCEEDED": 1}, "it has run")


def test_a_job_that_has_ended_is_found_without_waiting_and_one_that_does_not_exist_is_said_so(app, flow):
    with app.worker():
        job = flow.submit()
        job.result(SECONDS)
    app.close()
    assert app.job(job.id).result(0) == 1
    with pytest.raises(NotFound):
        app.job("no-such-job").result(SECONDS)
    with pytest.raises(NotFound):
        asyncio.run(_result_of(app.job("no-such-job")))


def test_a_bad_timeout_leaves_nobody_waiting(app, flow):
    job = flow.submit()
    for timeout in (-1, float("nan"), "soon"):
        with pytest.raises(BadDuration):
            job.result(timeout)
    assert not count_callers(app)


def test_a_worker_that_is_stopped_twice_at_once_stops_once(app, flow):
    stopped = []
    app.on_worker_stop(lambda: stopped.append(1))
    with ThreadPoolExecutor(1) as pool:
        with app.worker():
            flow.submit().result(SECONDS)
            closing = pool.submit(app.close)
        closing.result(SECONDS)
    assert stopped == [1]
    assert not app.is_working


def test_what_a_start_function_submits_runs_when_all_of_them_have_returned(app):
    seen = []

    @app.workflow
    def flow() -> None:
        seen.append("job")

    app.on_worker_start(flow.submit)
    app.on_worker_start(lambda: seen.append("second"))
    with app.worker():
        wait_until(lambda: len(seen) == 2, "both were called")
    assert seen == ["second", "job"]


def test_a_stop_function_that_wants_to_exit_does_not_keep_the_others_from_being_called(app, flow):
    stopped = []
    app.on_worker_stop(lambda: stopped.append("first declared"))

    @app.on_worker_stop
    def leave() -> None:
        raise SystemExit(3)

    with app.worker():
        flow.submit().result(SECONDS)
    assert stopped == ["first declared"]
    with app.worker():
        assert flow.submit().result(SECONDS) == 1


def test_sync_steps_of_async_workflows_run_in_as_many_threads_as_there_are_slots(app):
    together = threading.Barrier(12, timeout=SECONDS)

    @app.step
    def meets() -> None:
        together.wait()

    @app.tx
    def note(db: Tx) -> None:
        db.execute("SELECT 1")

    @app.workflow
    async def flow() -> None:
        await meets.aio()
        await note.aio()

    with app.worker(concurrency=12):
        for job in flow.submit_many([()] * 12):
            job.result(SECONDS)


def test_a_body_that_outlives_its_worker_is_not_run_beside_itself(app):
    begun, go = threading.Event(), threading.Event()
    at_once = [0, 0]

    @app.step
    def slow() -> None:
        at_once[0] += 1
        at_once[1] = max(at_once)
        begun.set()
        go.wait(SECONDS)
        at_once[0] -= 1

    @app.workflow
    async def flow() -> int:
        await slow.aio()
        return 1

    with app.worker(grace="10ms", lease="2s"):
        job = flow.submit()
        assert begun.wait(SECONDS)
    assert [event.name for event in job.history()] == ["submit", "claim"]  # it is left to its lease
    go.set()
    with app.worker():
        assert job.result(SECONDS) == 1
    assert at_once[1] == 1


def test_a_turn_that_is_asked_for_in_a_task_group_is_taken(app):
    @app.workflow
    async def flow(turn: int) -> int:
        if turn < 2:
            async with asyncio.TaskGroup() as group:
                group.create_task(_again(turn + 1))
        return turn

    with app.worker():
        assert flow.submit(0).result(SECONDS) == 2


async def _again(turn: int) -> None:
    tallystick.aio.again(turn)


def test_a_task_that_outlives_its_workflow_runs_no_more_steps(app):
    ran, ended = [], []

    @app.step
    async def late() -> None:
        ran.append(1)

    async def lingers(go: asyncio.Event) -> None:
        await go.wait()
        try:
            await late()
        except TallyError as error:
            ended.append(error)

    kept: dict[str, Any] = {}

    @app.workflow
    async def flow() -> None:
        kept["go"] = asyncio.Event()
        kept["loop"] = asyncio.get_running_loop()
        kept["task"] = asyncio.get_running_loop().create_task(lingers(kept["go"]))
        await asyncio.sleep(0)

    with app.worker():
        flow.submit().result(SECONDS)
        kept["loop"].call_soon_threadsafe(kept["go"].set)
        wait_until(lambda: ended, "the task was told")
    assert ran == []
    assert isinstance(ended[0], Misuse)


def test_a_tally_is_not_closed_by_what_runs_on_it(app):
    @app.workflow
    def flow() -> str:
        with pytest.raises(Misuse):
            app.close()
        return "still open"

    with app.worker():
        assert flow.submit().result(SECONDS) == "still open"


@pytest.mark.parametrize(
    "options",
    [
        {"lease": 0},
        {"concurrency": 0},
        {"concurrency": 2.5},
        {"concurrency": "4"},
        {"queues": "mail"},
        {"queues": ()},
    ],
    ids=str,
)
def test_a_worker_that_could_not_work_is_refused(app, options):
    with pytest.raises(BadInput), app.worker(**options):
        pass
