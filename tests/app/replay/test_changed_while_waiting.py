"""Code that is changed under a waiting job is noticed: it must come to what is open, or the job is held."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Retry, Tally, again, aio, gather, sleep, wait
from tallystick.testing.stepping import Death, SteppedWorker, check_books


class Parts:
    """The steps and children that programs of this test are made of."""

    def __init__(self, app):
        self.app = app
        self.ran = []

        @app.step
        def measure() -> int:
            return 3

        @app.step
        def sand() -> int:
            self.ran.append("sand")
            return 1

        @app.step(retry=Retry(tries=5, first="1m"))
        def saw() -> int:
            self.ran.append("saw")
            raise OSError("the saw is away")

        @app.step
        async def sand_async() -> int:
            self.ran.append("sand")
            return 1

        @app.workflow
        def plank(n: int) -> int:
            return n

        @app.workflow
        def board(n: int) -> int:
            return n

        self.measure, self.sand, self.saw, self.sand_async = measure, sand, saw, sand_async
        self.plank, self.board = plank, board


def two_children(parts):
    return sum(gather(parts.plank.child(1), parts.plank.child(2)))


# What a workflow does between two steps: before the deploy, and after it.
SYNC = {
    "a wait": lambda parts: wait("wood", str),
    "another wait": lambda parts: wait("paint", str),
    "a sleep": lambda parts: sleep("1h"),
    "a group": two_children,
    "another group": lambda parts: sum(gather(parts.plank.child(1), parts.board.child(2))),
    "a larger group": lambda parts: sum(gather(*(parts.plank.child(n) for n in (1, 2, 3)))),
    "a smaller group": lambda parts: parts.plank(1),
    "a step": lambda parts: parts.sand(),
    "a step and the wait": lambda parts: (parts.sand(), wait("wood", str)),
    "a detached job": lambda parts: parts.plank.opts(detached=True).submit(1),
    "a step that is tried again": lambda parts: parts.saw(),
    "nothing": lambda parts: None,
    "a turn": lambda parts: again(True),
    "an error": lambda parts: int("wood"),
}


async def children_async(parts):
    return sum(await aio.gather(parts.plank.child(1), parts.plank.child(2)))


async def in_tasks(parts):
    return await asyncio.gather(aio.wait("wood", str), aio.wait("paint", str))


async def other_tasks(parts):
    return await asyncio.gather(aio.wait("wood", str), aio.wait("glue", str))


async def sand_and_wait(parts):
    await parts.sand_async()
    return await aio.wait("wood", str)


async def nothing(parts):
    return None


ASYNC = {
    "a wait": lambda parts: aio.wait("wood", str),
    "another wait": lambda parts: aio.wait("paint", str),
    "a sleep": lambda parts: aio.sleep("1h"),
    "a group": children_async,
    "a step": lambda parts: parts.sand_async(),
    "a step and the wait": sand_and_wait,
    "waits in tasks": in_tasks,
    "other waits in tasks": other_tasks,
    "nothing": nothing,
}


def sync_program(body):
    def declare(app):
        parts = Parts(app)

        @app.workflow
        def shelf(turned: bool = False) -> int:
            if turned:
                return 7
            size = parts.measure()
            body(parts)
            return size

        return shelf, parts

    return declare


def async_program(body):
    def declare(app):
        parts = Parts(app)

        @app.workflow
        async def shelf() -> int:
            size = await asyncio.to_thread(lambda: 3)
            await body(parts)
            return size

        return shelf, parts

    return declare


@pytest.fixture
def world(url, clock):
    """Open the same store with one program after the other."""
    made = []

    def open_with(declare):
        tally = Tally(url, clock=clock)
        made.append(tally)
        workflow, parts = declare(tally)
        return tally, SteppedWorker(tally, clock), workflow, parts

    yield open_with
    for tally in made:
        tally.close()


WOKEN = {
    "a wait": lambda tally, job, clock, hand: job.send("wood", "oak"),
    "a sleep": lambda tally, job, clock, hand: clock.advance(3_600_000),
    "a step that is tried again": lambda tally, job, clock, hand: clock.advance(120_000),
    "a group": lambda tally, job, clock, hand: None,
    "waits in tasks": lambda tally, job, clock, hand: tally.send_many([job], "paint", "red"),
}


def deployed(world, clock, before, after, woken):
    """Submit to one program until it waits, go on with another, and return the job."""
    _tally, hand, shelf, _parts = world(before)
    job_id = shelf.submit().id
    assert hand.work() in ("Await", "EndAttempt")
    new, hand, _shelf, parts = world(after)
    job = new.job(job_id)
    woken(new, job, clock, hand)
    hand.work_all()
    return job, parts


def check_held(world, clock, job, before):
    row = job.row()
    assert (row.state, row.hold) == ("IN_PROGRESS", "MISMATCH"), row
    assert "no longer makes the calls" in row.hold_reason
    # Nothing is lost: with the code put back it goes on from where it stood.
    old, hand, _shelf, _parts = world(before)
    job = old.job(job.id)
    job.resume()
    job.send("wood", "oak")
    job.send("paint", "red")
    hand.work_all()
    assert job.row().hold is None
    assert check_books(old) == []
    return job


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a wait", "nothing"),
        ("a wait", "another wait"),
        ("a wait", "a sleep"),
        ("a wait", "a group"),
        ("a wait", "a step"),
        ("a wait", "a step and the wait"),
        ("a wait", "a detached job"),
        ("a wait", "a turn"),
        ("a wait", "an error"),
        ("a sleep", "nothing"),
        ("a sleep", "a wait"),
        ("a sleep", "a step"),
        ("a group", "nothing"),
        ("a group", "a wait"),
        ("a group", "another group"),
        ("a group", "a larger group"),
        ("a group", "a smaller group"),
        ("a step that is tried again", "nothing"),
        ("a step that is tried again", "a step"),
        ("a step that is tried again", "a wait"),
    ],
)
def test_a_sync_workflow_that_comes_to_something_else_is_held(world, clock, before, after):
    old = sync_program(SYNC[before])
    job, parts = deployed(world, clock, old, sync_program(SYNC[after]), WOKEN[before])
    assert parts.ran == []
    job = check_held(world, clock, job, old)
    if before != "a step that is tried again":
        assert job.result(5) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a wait", "nothing"),
        ("a wait", "another wait"),
        ("a wait", "a sleep"),
        ("a wait", "a step"),
        ("a wait", "a step and the wait"),
        ("a sleep", "nothing"),
        ("a sleep", "a wait"),
        ("a group", "nothing"),
        ("a group", "a wait"),
        ("waits in tasks", "other waits in tasks"),
        ("waits in tasks", "a wait"),
        ("waits in tasks", "nothing"),
    ],
)
def test_an_async_workflow_that_comes_to_something_else_is_held(world, clock, before, after):
    old = async_program(ASYNC[before])
    job, parts = deployed(world, clock, old, async_program(ASYNC[after]), WOKEN[before])
    if (before, after) == ("waits in tasks", "a wait"):
        # It still waits for one of the two; that the other one is gone is seen when it returns.
        job.send("wood", "oak")
        SteppedWorker(parts.app, clock).work_all()
    assert parts.ran == []
    assert check_held(world, clock, job, old).result(5) == 3


def test_the_hold_says_what_changed(world, clock):
    job, _parts = deployed(
        world, clock, sync_program(SYNC["a wait"]), sync_program(SYNC["a step and the wait"]), WOKEN["a wait"]
    )
    reason = job.row().hold_reason
    assert "- wood#1 (open)" in reason
    assert "+ sand#1" in reason
    grown, _parts = deployed(
        world, clock, sync_program(SYNC["a group"]), sync_program(SYNC["another group"]), WOKEN["a group"]
    )
    assert "child 1 of gather#1 was one of plank, and now is one of board" in grown.row().hold_reason


def test_a_wait_that_lost_a_race_is_not_missed(timed, hand):
    """Its branch comes to it late on every replay, is cancelled when another wins, and stays open."""

    @timed.workflow
    async def race() -> list[str]:
        async def deep(name: str) -> str:
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    await asyncio.sleep(0)
                return await group.create_task(aio.wait(name, str))

        async def first(*names: str) -> str:
            tasks = [asyncio.create_task(deep(n) if n == "slow" else aio.wait(n, str)) for n in names]
            done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            return done.pop().result()

        return [await first("a", "slow"), await first("b", "c"), await aio.wait("d", str)]

    job = race.submit()
    for name in ("a", "c", "d"):
        assert hand.work() == "Await"
        job.send(name, name)
    assert hand.work() == "EndJob"
    assert job.result(5) == ["a", "c", "d"]
    assert check_books(timed) == []


def test_a_wait_that_lost_a_race_is_not_missed_after_a_crash(timed, hand):
    deaths = [1]

    @timed.step
    async def mark(name: str) -> str:
        return name

    @timed.workflow
    async def race() -> str:
        tasks = [asyncio.create_task(aio.wait(name, str)) for name in ("a", "b")]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        won = await mark(done.pop().result())
        if deaths and deaths.pop():
            raise Death
        return won

    job = race.submit()
    job.send("b", "b")
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "b"


def test_enough_children_and_those_that_go_on_are_not_missed(timed, hand):
    @timed.workflow
    def item(n: int) -> int:
        return n if n < 3 else wait("never", int)

    @timed.workflow
    def some() -> int:
        first = gather(*(item.child(n) for n in (1, 2, 3)), enough=2)
        return sum(first) + wait("more", int)

    job = some.submit()
    hand.work_all()
    job.send("more", 10)
    hand.work_all()
    assert job.result(5) == 13
