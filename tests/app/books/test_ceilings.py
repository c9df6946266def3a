"""A full ledger: what it cannot count ends the job with LEDGER_CEILING; what need not be counted goes on."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Retry, again, aio, gather, wait
from tallystick.errors import BadInput, JobFailed
from tallystick.testing.stepping import die
from tests.cut_spawn import cut_spawn, small_spawns

LEG1_FULL, LEG2_FULL = 999_100_000_000_000, 1_100_099_999_999


def preset(app, table: str, column: str, ledger: int) -> None:
    """Put digits into the only row that has them."""
    with app.transaction() as db:
        db.execute(f"update {table} set {column} = {ledger}")


def ledgers(app, table: str, column: str) -> list[int]:
    with app.connect() as db:
        return [ledger for (ledger,) in db.execute(f"select {column} from {table}")]


def ceiling(job) -> str:
    with pytest.raises(JobFailed) as failed:
        job.result(5)
    return failed.value.fields["error_code"]


def test_a_signal_that_a_wait_cannot_count_ends_the_job(timed, hand):
    @timed.workflow
    def flow() -> None:
        wait("go", bool)

    job = flow.submit()
    hand.work()
    preset(timed, "steps", "ledger", LEG2_FULL)
    job.send("go", True)
    assert hand.work() == "idle"
    assert ceiling(job) == "LEDGER_CEILING"
    assert ledgers(timed, "steps", "ledger") == [LEG2_FULL]
    with timed.connect() as db:
        assert db.execute("select ledger from messages where acked_at is not null") == [(0,)]
        assert db.execute("select semaphore from jobs") == [(0,)]


def test_a_turn_that_the_root_cannot_count_ends_the_job(timed, hand):
    @timed.workflow
    def loop(n: int) -> int:
        return again(n + 1)

    job = loop.submit(0)
    hand.work()
    preset(timed, "jobs", "root_ledger", 1_111_099_999_999)
    assert hand.work() == "idle"
    assert ceiling(job) == "LEDGER_CEILING"
    assert ledgers(timed, "jobs", "root_ledger") == [1_111_099_999_999]


def test_a_wait_that_is_met_for_the_thousandth_time_goes_on(timed, hand):
    @timed.workflow
    async def flow() -> None:
        await asyncio.gather(aio.wait("a", bool), aio.wait("b", bool))

    job = flow.submit()
    hand.work()
    with timed.transaction() as db:
        db.execute(f"update steps set ledger = {LEG1_FULL} where name = 'b'")
    job.send("a", True)
    hand.work()
    with timed.connect() as db:
        assert db.execute("select ledger from steps where name = 'b'") == [(LEG1_FULL,)]
    job.send("b", True)
    hand.work_all()
    assert job.result(5) is None


def test_a_spawn_that_is_made_for_the_thousandth_time_ends_the_job(timed, hand, monkeypatch):
    small_spawns(monkeypatch.setattr, 1)
    cut_spawn(monkeypatch.setattr, die)

    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def flow() -> None:
        gather(child.child(), child.child())

    job = flow.submit()
    assert hand.work() == "died"
    preset(timed, "steps", "ledger", 999_000_000_000_000)
    hand.expire()
    hand.work_all()
    assert ceiling(job) == "LEDGER_CEILING"
    assert ledgers(timed, "steps", "ledger") == [999_000_000_000_000]


def test_a_step_that_is_tried_for_the_thousandth_time_ends_the_job(timed, hand):
    @timed.step
    def work() -> int:
        return 1

    @timed.workflow
    def flow() -> int:
        return work()

    job = flow.submit()
    segment = hand.claim()
    segment.failed_tries["work", 1] = 999
    hand.run(segment)
    assert ceiling(job) == "LEDGER_CEILING"
    with pytest.raises(BadInput, match="999"):
        Retry(1_000)


def test_a_child_that_its_group_cannot_count_ends_its_parent(timed, hand):
    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def flow() -> None:
        gather(child.child(), child.child())

    job = flow.submit()
    hand.work()
    preset(timed, "steps", "ledger", LEG2_FULL)
    assert hand.work() == "EndJob"
    hand.work_all()
    assert ceiling(job) == "LEDGER_CEILING"
    assert ledgers(timed, "steps", "ledger") == [LEG2_FULL]


def test_a_cancellation_that_the_root_cannot_count_ends_the_job_all_the_same(timed, hand):
    @timed.workflow
    def flow() -> None:
        wait("go", bool)

    job = flow.submit()
    hand.work()
    preset(timed, "jobs", "root_ledger", 1_111_099_999_999)
    job.cancel()
    assert ceiling(job) == "LEDGER_CEILING"
    assert ledgers(timed, "jobs", "root_ledger") == [1_111_099_999_999]
