"""Calls of one step side by side, calls that are not awaited, and steps that swallow their timeout."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tallystick import JobFailed, Retry, StepFailed, Tally, current, thread_map
from tallystick.testing.stepping import Death, SteppedWorker

PATIENCE = 30


@pytest.fixture(params=["gather", "task group"])
def side_by_side(request):
    async def by_gather(calls):
        return list(await asyncio.gather(*calls))

    async def by_group(calls):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
        return [task.result() for task in tasks]

    return by_gather if request.param == "gather" else by_group


def test_calls_of_one_step_run_side_by_side_and_are_numbered_in_the_order_of_the_calls(app, side_by_side):
    gate = asyncio.Event()

    @app.step
    async def numbered(n: int) -> tuple[int, int]:
        if n == 0:
            await gate.wait()
        elif n == 9:
            gate.set()
        return n, current().occurrence

    @app.workflow
    async def flow() -> list[tuple[int, int]]:
        return await side_by_side([numbered(n) for n in range(10)])

    with app.worker():
        job = flow.submit()
        assert job.result(PATIENCE) == [(n, n + 1) for n in range(10)]
    steps = [event for event in job.history() if event.name == "step"]
    assert len(steps) == 10


def test_a_replay_gives_each_of_them_its_own_result(timed, clock):
    """The later ones end first and are recorded; after the crash every call gets what was recorded for it."""
    app, hand = timed, SteppedWorker(timed, clock)
    runs, dies = [], [True]

    @app.step
    async def square(n: int) -> int:
        runs.append(n)
        if n == 0 and dies:
            await asyncio.sleep(0.2)
            dies.clear()
            raise Death
        return n * n

    @app.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(*(square(n) for n in range(4))))

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    hand.work_all()
    assert job.result(1) == [0, 1, 4, 9]
    assert sorted(runs) == [0, 0, 1, 2, 3]


def test_threads_go_on_in_any_order_after_a_death(timed, hand):
    recorded, runs = threading.Event(), []

    @timed.step
    def work(what: str) -> str:
        runs.append(what)
        if what == "slow" and runs.count(what) == 1:
            assert recorded.wait(PATIENCE)
            raise Death
        return what

    @timed.workflow
    def flow() -> list[str]:
        def one(what: str) -> str:
            value = work.named(what)(what)
            if what == "fast":
                recorded.set()
            return value

        return thread_map(one, ["slow", "fast"])

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    hand.work_all()
    assert (job.result(1), sorted(runs)) == (["slow", "fast"], ["fast", "slow", "slow"])


def test_sync_steps_run_side_by_side_by_aio(app):
    @app.step
    def half(n: int) -> int:
        return n // 2

    @app.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(*(half.aio(n) for n in range(8))))

    with app.worker():
        assert flow.submit().result(PATIENCE) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("how", ["never begun", "still running"])
def test_a_call_that_was_not_awaited_fails_the_job_with_its_name(app, how):
    @app.step
    async def charge(n: int) -> int:
        await asyncio.sleep(5)
        return n

    @app.workflow
    async def flow() -> str:
        call = charge(1)
        if how == "still running":
            flow_tasks.append(asyncio.create_task(call))
            await asyncio.sleep(0)
        return "done"

    flow_tasks: list[asyncio.Task[int]] = []
    with app.worker():
        job = flow.submit()
        with pytest.raises(JobFailed, match="charge#1"):
            job.result(PATIENCE)
    assert job.row().error_code == "CALL_NOT_AWAITED"


def test_a_call_that_was_cancelled_is_no_reason_to_fail(app):
    @app.step
    async def slow() -> None:
        await asyncio.sleep(5)

    @app.workflow
    async def flow() -> str:
        tasks = [asyncio.create_task(slow()), asyncio.create_task(slow())]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        late = asyncio.create_task(slow())
        late.cancel()
        return "done"

    with app.worker():
        assert flow.submit().result(PATIENCE) == "done"


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_an_async_step_that_swallows_its_timeout_has_timed_out(app, ends):
    @app.step(timeout="50ms", retry=Retry(1))
    async def stubborn() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            if ends == "raises":
                raise ValueError("another error") from None
        return "late"

    @app.workflow
    async def flow() -> str | None:
        try:
            return await stubborn()
        except StepFailed as error:
            return error.error_code

    with app.worker():
        assert flow.submit().result(PATIENCE) == "STEP_TIMEOUT"


def test_threads_still_need_names(tmp_path):
    app = Tally(f"sqlite:///{tmp_path / 'shop.db'}")

    @app.step
    def quote(n: int) -> int:
        return n

    @app.workflow
    def flow() -> list[int]:
        from tallystick import thread_map

        return list(thread_map(quote, [1, 2]))

    with app.worker():
        job = flow.submit()
        with pytest.raises(JobFailed, match="named"):
            job.result(PATIENCE)
    app.close()
