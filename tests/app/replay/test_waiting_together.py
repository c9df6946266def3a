"""An async workflow may wait for several things at once: all are open together, and the first goes on."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Delivered, aio
from tallystick.testing.stepping import Death
from tests.app.replay.test_waiting import books
from tests.elsewhere import elsewhere
from tests.patience import wait_until

MINUTE_MS = 60_000


def stale_reports(app) -> int:
    with app.transaction() as db:
        return db.execute("select count(*) from stale_reports")[0][0]


@pytest.fixture
def both(timed):
    @timed.workflow
    async def both() -> list[str | None]:
        return list(await asyncio.gather(aio.wait("a", str, timeout="1m"), aio.wait("b", str, timeout="2m")))

    return both


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_waits_are_open_together_and_answered_in_any_order(timed, hand, both, order):
    job = both.submit()
    assert hand.work() == "Await"
    assert books(timed, job)[:2] == (2, 2)
    assert [event.payload for event in job.history()][-1].endswith('"for":"a#1, b#1"}')
    assert job.send(order[0], order[0]) is Delivered.WOKE
    assert hand.work() == "Await"
    assert job.send(order[1], order[1]) is Delivered.WOKE
    assert hand.work() == "EndJob"
    assert job.result(5) == ["a", "b"]
    assert books(timed, job)[:2] == (0, 0)
    assert stale_reports(timed) == 0


def test_the_timers_of_waits_that_wait_together_run_together(timed, hand, clock, both):
    job = both.submit()
    hand.work()
    clock.advance(MINUTE_MS)
    assert hand.work() == "Await"
    assert hand.work() == "idle"
    clock.advance(MINUTE_MS)
    assert hand.work() == "EndJob"
    assert job.result(5) == [None, None]
    assert books(timed, job)[:2] == (0, 0)


def test_signals_that_came_early_are_taken_one_after_the_other_in_one_segment(timed, hand, both):
    job = both.submit()
    job.send("b", "b")
    job.send("a", "a")
    assert hand.work() == "EndJob"
    assert job.result(5) == ["a", "b"]
    names = [event.name for event in job.history()]
    assert names == ["submit", "claim", "wait", "wait", "return"]
    assert stale_reports(timed) == 0


def test_two_waits_of_one_name_take_its_signals_in_order(timed, hand):
    @timed.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(aio.wait("n", int), aio.wait("n", int)))

    job = flow.submit()
    hand.work()
    for n in (1, 2):
        job.send("n", n)
    assert hand.work() == "EndJob"
    assert job.result(5) == [1, 2]


def test_the_first_of_two_wins_on_replay_as_it_did_at_first(timed, hand, clock):
    """What happened in one order is released in that order, whichever task asks first."""
    deaths, seen = [1], []

    @timed.step
    async def note(who: str) -> str:
        return who

    @timed.workflow
    async def race() -> str:
        tasks = {name: asyncio.ensure_future(aio.wait(name, str)) for name in ("a", "b")}
        done, _ = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        first = await note(next(task.result() for task in done))
        seen.append((first, len(done)))
        second = [await task for task in tasks.values()]
        if deaths:
            deaths.pop()
            raise Death
        return first + "".join(second)

    job = race.submit()
    hand.work()
    job.send("b", "b")
    assert hand.work() == "Await"
    job.send("a", "a")
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "bab"
    assert seen == [("b", 1)] * 3
    assert stale_reports(timed) == 0


def test_a_wait_that_nobody_wants_any_more_is_dropped_at_the_end(timed, hand):
    @timed.workflow
    async def first_of_two() -> str:
        tasks = [asyncio.ensure_future(aio.wait(name, str)) for name in ("a", "b")]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        return done.pop().result()

    job = first_of_two.submit()
    hand.work()
    job.send("b", "b")
    assert hand.work() == "EndJob"
    assert job.result(5) == "b"
    assert books(timed, job)[:2] == (0, 0)
    with timed.transaction() as db:
        assert db.execute("select state from steps order by name") == [("CANCELLED",), ("SUCCEEDED",)]


def test_a_step_beside_a_wait_is_finished_before_the_job_is_put_away(timed, hand):
    runs = []

    @timed.step
    async def slow() -> int:
        runs.append(1)
        for _ in range(100):
            await asyncio.sleep(0)
        return 7

    @timed.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(aio.wait("go", int), slow()))

    job = flow.submit()
    assert hand.work() == "Await"
    job.send("go", 1)
    assert hand.work() == "EndJob"
    assert job.result(5) == [1, 7]
    assert runs == [1]
    assert stale_reports(timed) == 0


def test_two_groups_and_a_signal_are_open_at_once(timed, hand):
    @timed.workflow
    async def square(n: int) -> int:
        return n * n

    @timed.workflow
    async def flow() -> int:
        one, two, three = await asyncio.gather(
            aio.gather(square.child(1), square.child(2)), aio.gather(square.child(3)), aio.wait("go", int)
        )
        return sum(one) + sum(two) + three

    job = flow.submit()
    assert hand.work() == "Await"
    assert books(timed, job)[:2] == (3, 3)
    hand.work_all()
    job.send("go", 100)
    hand.work_all()
    assert job.result(5) == 1 + 4 + 9 + 100
    assert books(timed, job)[:2] == (0, 0)
    assert stale_reports(timed) == 0


def test_an_answer_that_is_taken_beside_other_tasks_is_written_before_the_job_is_put_away(timed, hand):
    """A flush writes what suspends a job first; so nobody suspends it while an answer is on its way."""

    @timed.workflow
    async def child(n: int) -> int:
        return n

    @timed.workflow
    async def flow() -> int:
        ones, others, last = await asyncio.gather(
            aio.gather(child.child(1)), aio.gather(child.child(2)), aio.wait("go", int)
        )
        return sum(ones) + sum(others) + last

    for _ in range(10):
        job = flow.submit()
        hand.work_all()
        job.send("go", 4)
        hand.work_all()
        assert job.result(5) == 7
    assert stale_reports(timed) == 0


def test_tasks_that_still_wait_end_with_their_workflow(app):
    left = []

    @app.workflow
    async def flow() -> str:
        left.append(asyncio.ensure_future(aio.wait("never", str)))
        await asyncio.sleep(0)
        return "done"

    with app.worker():
        assert flow.submit().result(30) == "done"
        wait_until(left[0].cancelled, "the task has ended")


def test_a_cancelled_job_is_told_at_every_wait_that_waits(timed, hand):
    told = []

    @timed.workflow
    async def flow() -> None:
        async def one(name: str) -> None:
            try:
                await aio.wait(name, str)
            except BaseException as error:
                told.append(type(error).__name__)
                raise

        elsewhere(job.cancel)
        await asyncio.gather(one("a"), one("b"))

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.state() == "CANCELLED"
    assert told[0] == "Cancelled"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_task_group_may_wait_too(timed, hand, order):
    @timed.workflow
    async def flow() -> str:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(aio.wait("a", str))
            two = group.create_task(aio.wait("b", str))
        return one.result() + two.result()

    job = flow.submit()
    assert hand.work() == "Await"
    job.send(order[0], order[0])
    assert hand.work() == "Await"
    job.send(order[1], order[1])
    assert hand.work() == "EndJob"
    assert job.result(5) == "ab"


def test_a_task_group_of_a_cancelled_job_ends_cancelled(timed, hand):
    @timed.workflow
    async def flow() -> None:
        elsewhere(job.cancel)
        async with asyncio.TaskGroup() as group:
            group.create_task(aio.wait("a", str))
            group.create_task(aio.wait("b", str))

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.state() == "CANCELLED"


def test_an_error_in_a_task_group_fails_the_job(timed, hand):
    @timed.workflow
    async def flow() -> None:
        async def bad() -> None:
            raise ValueError("no")

        async with asyncio.TaskGroup() as group:
            group.create_task(bad())

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.state() == "FAILED_FINAL"
