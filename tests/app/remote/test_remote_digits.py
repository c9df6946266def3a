"""The fifteen digits of remote steps in the tables of real jobs, after every commit, on every store."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import wait
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import check_books
from tests.app import digits_by_hand as expected


class Ledgers:
    """What the tables say of the digits of a job."""

    def __init__(self, app, job) -> None:
        self._app, self._job = app, job

    def _rows(self, query: str) -> list[tuple]:
        with self._app.connect() as db:
            return db.execute(query)

    def job(self) -> tuple[str, str, int]:
        query = f"select root_ledger, start_ledger, semaphore from jobs where job_id = '{self._job.id}'"
        ((root, start, semaphore),) = self._rows(query)
        return f"{root:015d}", f"{start:015d}", semaphore

    def step(self, occurrence: int = 1) -> tuple[str, str | None]:
        own = f"job_id = '{self._job.id}' and occurrence = {occurrence}"
        ((ledger,),) = self._rows(f"select ledger from steps where {own} and kind = 'remote'")
        messages = self._rows(f"select ledger from messages where {own} and kind = 'result'")
        return f"{ledger:015d}", f"{messages[0][0]:015d}" if messages else None


@pytest.mark.parametrize("then", ["returns", "waits"])
def test_a_remote_step_through_every_commit(timed, clock, hand, then):
    @timed.remote("warehouse")
    def pick() -> int:
        raise NotImplementedError

    @timed.step
    def work() -> None:
        look("went on")

    @timed.workflow
    def order() -> None:
        pick()
        work()
        if then == "waits":
            wait("more", bool)

    job = order.submit()
    ledgers = Ledgers(timed, job)
    seen: list[tuple] = []

    def look(what: str) -> None:
        seen.append((what, *ledgers.job(), *ledgers.step()))
        assert check_books(timed) == []

    warehouse = RemoteHand(timed, "warehouse")
    hand.work()
    look("asked")
    directive = warehouse.take()
    look("taken")
    directive.ack()
    look("acknowledged")
    directive.fail("BUSY", again=True)
    look("failed")
    clock.advance(60_000)
    expire_remote(timed)
    look("asked again")
    warehouse.take().succeed(1)
    look("answered")
    segment = hand.claim()
    look("claimed")
    hand.run(segment)
    look("returned" if then == "returns" else "suspended again")
    assert seen == (expected.REMOTE if then == "returns" else expected.REMOTE_AND_WAIT)


def test_results_that_another_one_drives(timed, hand):
    @timed.remote("warehouse")
    async def pick(n: int) -> int:
        raise NotImplementedError

    @timed.workflow
    async def order() -> list[int]:
        return list(await asyncio.gather(pick(1), pick(2)))

    job = order.submit()
    ledgers = Ledgers(timed, job)
    warehouse = RemoteHand(timed, "warehouse")
    hand.work()
    for directive in (warehouse.take(), warehouse.take()):
        directive.succeed(1)
    seen = [(*ledgers.job(), ledgers.step(1), ledgers.step(2))]
    hand.work_all()
    assert [*seen, (*ledgers.job(), ledgers.step(1), ledgers.step(2))] == expected.TWO_REMOTES
    assert check_books(timed) == []
