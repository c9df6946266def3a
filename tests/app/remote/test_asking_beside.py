"""A directive goes out when its step is called, also while an async workflow does something else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tallystick import current
from tallystick.testing.remote_hand import HeldDirective, RemoteHand
from tallystick.testing.stepping import check_books, die
from tests.patience import wait_until


@pytest.fixture
def warehouse(timed):
    return RemoteHand(timed, "warehouse")


@pytest.fixture
def pick(timed):
    @timed.remote("warehouse")
    async def pick(n: int) -> int:
        raise NotImplementedError

    return pick


def taken_of(hand: RemoteHand) -> HeldDirective:
    """Wait for a directive while a step runs, and take it."""
    taken: list[Any] = []
    wait_until(lambda: taken.append(hand.look()) or taken[-1], "a directive")
    return taken[-1]


def test_a_remote_worker_does_not_wait_for_a_step_beside_its_own(timed, hand, pick, warehouse):
    @timed.step
    def pack(n: int) -> int:
        directive = taken_of(warehouse)
        assert directive.row.step_id == "0/pick#1"
        directive.succeed(directive.payload["n"] + 10)
        return n

    @timed.workflow
    async def order(n: int) -> int:
        picked, packed = await asyncio.gather(pick(n), pack.aio(100))
        return picked + packed

    job = order.submit(7)
    assert hand.work() == "EndJob"
    assert job.result(5) == 117
    assert check_books(timed) == []
    with timed.connect() as db:
        digits = db.execute("select name, ledger from steps where kind = 'remote'")
        assert [tuple(row) for row in digits] == [("pick", 1_111_000_000_001)]


def test_what_went_out_early_is_asked_for_once_by_whoever_takes_the_job_over(timed, hand, pick, warehouse):
    beaten = []

    @timed.step
    def pack(n: int) -> int:
        if not beaten:
            beaten.append(taken_of(warehouse))
            beaten[0].ack()
            die()
        return n

    @timed.workflow
    async def order(n: int) -> int:
        return sum(await asyncio.gather(pick(n), pack.aio(100), pick(n + 1)))

    job = order.submit(7)
    assert hand.work() == "died"
    assert check_books(timed) == []
    hand.expire()
    assert hand.work() == "Await"
    assert [beaten[0].succeed(1).name, warehouse.take().succeed(2).name] == ["ACCEPTED", "ACCEPTED"]
    hand.work_all()
    assert job.result(5) == 103
    with timed.connect() as db:
        (count,) = db.execute("select count(*) from outbox")
    assert tuple(count) == (2,)
    assert check_books(timed) == []


def test_a_job_that_is_to_end_asks_for_nothing_beside_its_step(timed, hand, pick, warehouse):
    @timed.step
    def stop() -> None:
        timed.job(current().job_id).cancel()

    @timed.step
    def pack() -> None:
        return None

    async def after_the_request() -> int:
        await stop.aio()
        return await pick(1)

    @timed.workflow
    async def order() -> None:
        await asyncio.gather(after_the_request(), pack.aio())

    job = order.submit()
    hand.work_all()
    assert warehouse.look() is None
    assert job.state() == "CANCELLED"
    assert check_books(timed) == []
