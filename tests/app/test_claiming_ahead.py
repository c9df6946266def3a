"""Jobs whose functions return at once are claimed ahead of the slots; all others only for a slot."""

from __future__ import annotations

import asyncio

from tallystick import aio
from tests.patience import wait_until


def test_a_fan_of_children_that_return_at_once_takes_few_flushes(app):
    @app.workflow
    async def leaf(n: int) -> int:
        return n

    @app.workflow
    async def fan(n: int) -> int:
        return sum(await aio.gather(*(leaf.child(k) for k in range(n))))

    costs = []
    with app.worker(concurrency=8):
        for _ in range(3):
            before = app.runtime().committer.flushes
            assert fan.submit(200).result(60) == 19_900
            costs.append(app.runtime().committer.flushes - before)
    # Birth, answer and twenty-five rounds of eight would be more.
    assert min(costs) < 20


def test_a_parent_and_its_children_are_five_flushes(app):
    """Submitted; born, suspended and claimed; ended, with the claim of the parent; answered and ended."""

    @app.workflow
    async def leaf(n: int) -> int:
        return n

    @app.workflow
    async def fan(n: int) -> int:
        return sum(await aio.gather(*(leaf.child(k) for k in range(n))))

    costs = []
    with app.worker(concurrency=16):
        for _ in range(5):
            wait_until(lambda: app.runtime().worker.idle)
            before = app.runtime().committer.flushes
            assert fan.submit(10).result(60) == 45
            costs.append(app.runtime().committer.flushes - before)
    # The worker may happen to look for work in between, which is a flush of its own.
    assert min(costs) <= 5


def test_what_was_claimed_ahead_of_a_slow_job_is_given_back_and_nobody_is_charged(app):
    """Never do more functions run than there are slots, and every job runs once to its end."""
    running, most, release = 0, 0, asyncio.Event()

    @app.workflow
    async def job(slow: bool) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if slow:
            await release.wait()
        running -= 1

    async def let_go() -> None:
        release.set()

    calls = [(False,)] * 12 + [(True,)] * 40
    with app.worker(concurrency=4):
        worker = app.runtime().worker
        jobs = job.submit_many(calls)
        # Those that stood in line behind the slow ones are others' to take.
        wait_until(lambda: running == 4 and len(worker.running) == 4)
        worker._tasks.call(let_go)
        for one in jobs:
            one.result(60)
    assert most <= 4
    histories = [[event.type for event in app.runtime().store.history(one.id)] for one in jobs]
    given_back = [types for types in histories if "release" in types]
    assert given_back
    assert all(types[:2] == ["submit", "claim"] and types[-1] == "return" for types in histories)
