"""Tasks of a workflow go on in a replay in the order in which they first did: nobody gets another's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import tallystick
from tallystick import JobFailed, thread_map
from tallystick.testing.stepping import Death, SteppedWorker
from tests.patience import wait_until

SECONDS = 20


@pytest.fixture
def hand(timed, clock):
    return SteppedWorker(timed, clock)


@pytest.fixture
def done():
    """Say when the slow one may come to its end."""
    return asyncio.Event()


@pytest.fixture
def race(timed, done):
    """Return a step that two tasks are in at once, the one begun first leaving it last."""

    @timed.step
    async def race(name: str) -> str:
        if name == "slow":
            await done.wait()
        return name

    return race


def replayed(hand: SteppedWorker, job: Any, seen: list[Any]) -> None:
    """Let the job die once, take it over, and insist that both runs saw the same."""
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.state() == "SUCCEEDED"
    assert seen[0] == seen[1]
    assert len(seen) == 2


async def side_by_side(branch: Callable[[str, dict[str, str]], Coroutine[Any, Any, None]]) -> dict[str, str]:
    """Run a slow and a fast branch as tasks, and return what each has put under its name."""
    found: dict[str, str] = {}
    async with asyncio.TaskGroup() as group:
        for name in ("slow", "fast"):
            group.create_task(branch(name, found))
    return found


def die_once(seen: list[Any], what: Any) -> None:
    """Note what a run saw; the first one dies of it."""
    seen.append(what)
    if len(seen) == 1:
        raise Death


def test_what_tasks_draw_after_steps_of_different_length_is_theirs_in_a_replay_too(timed, hand, race, done):
    seen: list[Any] = []

    @timed.step
    async def mark() -> None: ...

    async def branch(name: str, keys: dict[str, str]) -> None:
        await race.named(name)(name)
        keys[name] = str(tallystick.uuid())
        done.set()

    @timed.workflow
    async def flow() -> None:
        keys = await side_by_side(branch)
        await mark()
        die_once(seen, keys)

    replayed(hand, flow.submit(), seen)
    assert seen[0]["slow"] != seen[0]["fast"]


def test_one_step_called_by_two_tasks_one_after_the_other_gives_each_its_own_in_a_replay_too(
    timed, hand, race, done
):
    seen: list[Any] = []

    @timed.step
    async def charge(name: str) -> str:
        return f"receipt of {name}"

    async def branch(name: str, receipts: dict[str, str]) -> None:
        await race.named(name)(name)
        receipts[name] = await charge(name)
        done.set()

    @timed.workflow
    async def flow() -> None:
        die_once(seen, await side_by_side(branch))

    replayed(hand, flow.submit(), seen)
    assert seen[0] == {"slow": "receipt of slow", "fast": "receipt of fast"}


def test_a_task_that_is_far_ahead_waits_for_those_who_asked_before_it_and_were_not_answered(timed, hand):
    """The slow one has asked for its record when the fast one asks for a later one of its own."""
    seen: list[Any] = []
    first_done, second_begun = asyncio.Event(), asyncio.Event()

    @timed.step
    async def slow() -> None:
        await first_done.wait()

    @timed.step
    async def fast(number: int) -> None:
        if number == 2:
            await second_begun.wait()

    @timed.step
    async def mark() -> None: ...

    async def slow_branch(keys: list[str]) -> None:
        await slow()
        keys.append(f"slow {tallystick.uuid()}")
        second_begun.set()

    async def fast_branch(keys: list[str]) -> None:
        await fast.named("one")(1)
        first_done.set()
        await fast.named("two")(2)
        keys.append(f"fast {tallystick.uuid()}")

    @timed.workflow
    async def flow() -> None:
        keys: list[str] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(slow_branch(keys))
            group.create_task(fast_branch(keys))
        await mark()
        die_once(seen, keys)

    replayed(hand, flow.submit(), seen)
    assert [key.split()[0] for key in seen[0]] == ["slow", "fast"]


def test_a_thousand_tasks_come_in_the_order_of_their_records(timed, hand):
    seen: list[Any] = []
    count = 1_000

    @timed.step
    async def step(number: int) -> int:
        for _ in range(3 * (count - number) // count):
            await asyncio.sleep(0)
        return number

    @timed.workflow
    async def flow() -> None:
        tasks = [asyncio.ensure_future(step.named(f"n{number}")(number)) for number in range(count)]
        die_once(seen, [await one for one in asyncio.as_completed(tasks)])

    replayed(hand, flow.submit(), seen)
    assert seen[0] != sorted(seen[0])


def test_who_came_first_comes_first_in_a_replay_too(timed, hand, race, done):
    seen: list[Any] = []

    @timed.step
    async def take(name: str) -> str:
        return name

    @timed.workflow
    async def flow() -> None:
        tasks = [asyncio.ensure_future(race.named(name)(name)) for name in ("slow", "fast")]
        order = []
        for one in asyncio.as_completed(tasks):
            order.append(await one)
            done.set()
        await take.named(order[0])(order[0])
        die_once(seen, order)

    replayed(hand, flow.submit(), seen)
    assert seen[0] == ["fast", "slow"]


def test_a_replay_goes_on_where_only_some_of_the_tasks_had_come_to_their_records(timed, hand):
    """What was recorded waits for nothing that was not: the rest is simply done."""
    seen: list[Any] = []

    @timed.step
    async def part(name: str) -> str:
        seen.append(name)
        if name == "third" and seen.count("third") == 1:
            raise Death
        return name

    @timed.workflow
    async def flow() -> list[str]:
        return list(await asyncio.gather(*(part.named(name)(name) for name in ("first", "second", "third"))))

    job = flow.submit()
    assert hand.work() == "died"
    # What the other two had handed over may become durable just now, and then nobody is reclaimed at once.
    wait_until(lambda: (hand.expire(), hand.work())[1] == "EndJob", "the job is taken over")
    assert job.result(SECONDS) == ["first", "second", "third"]


def test_threads_of_a_workflow_draw_nothing_and_name_their_steps(app):
    @app.step
    def double(number: int) -> int:
        return 2 * number

    @app.workflow
    def draws() -> list[str]:
        return thread_map(lambda _: str(tallystick.uuid()), range(2))

    @app.workflow
    def calls() -> list[int]:
        return thread_map(double, range(2), threads=1)

    with app.worker():
        with pytest.raises(JobFailed, match="draw it in the workflow's own thread"):
            draws.submit().result(SECONDS)
        with pytest.raises(JobFailed, match=r"double\.named"):
            calls.submit().result(SECONDS)
