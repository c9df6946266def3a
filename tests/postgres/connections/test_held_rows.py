"""Rows and keys that another transaction holds make one submission wait, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tallystick import Tally
from tallystick.errors import StoreBusy, StoreMisused
from tests.patience import wait_until
from tests.postgres.subject import PostgresSubject

SECONDS = 30


@pytest.fixture
def app(subject: PostgresSubject) -> Iterator[Tally]:
    tally = Tally(subject.url)
    yield tally
    tally.close()


@pytest.fixture
def flow(app: Tally):
    @app.workflow
    def flow(n: int) -> int:
        return n + 1

    return flow


@pytest.fixture
def holder(subject: PostgresSubject, flow) -> Iterator[psycopg.Connection]:
    """An open transaction with a submission in it, under a key."""
    with psycopg.connect(subject.dsn) as connection:
        flow.opts(within=connection, idempotency_key="order-1").submit(1)
        yield connection


def held_up(app: Tally) -> bool:
    return bool(app.runtime().committer._stragglers)


def test_a_key_that_a_transaction_holds_makes_its_own_submission_wait_alone(app: Tally, flow, holder) -> None:
    """All submissions of the process, and its renewals, stood behind it before."""
    mine = flow.opts(idempotency_key="order-1")
    with app.worker(lease="3s"), ThreadPoolExecutor() as pool:
        waits = pool.submit(mine.submit, 1)
        wait_until(lambda: held_up(app), "waiting")
        for n in range(20):
            assert flow.opts(idempotency_key=f"other-{n}").submit(n).result(SECONDS) == n + 1
        assert [job.result(SECONDS) for job in flow.submit_many([(5,), (6,)])] == [6, 7]
        assert not waits.done()
        holder.commit()
        job = waits.result(SECONDS)
        assert (job.created, job.result(SECONDS)) == (False, 2)
    assert len(app.jobs()) == 23


def test_when_the_other_transaction_is_undone_the_submission_makes_the_job(app: Tally, flow, holder) -> None:
    mine = flow.opts(idempotency_key="order-1")
    with app.worker(), ThreadPoolExecutor() as pool:
        waits = pool.submit(mine.submit, 7)
        wait_until(lambda: held_up(app), "waiting")
        holder.rollback()
        job = waits.result(SECONDS)
        assert (job.created, job.result(SECONDS)) == (True, 8)


def test_a_task_waits_for_its_key_while_others_go_on(app: Tally, flow, holder) -> None:
    async def main() -> tuple[bool, int]:
        waits = asyncio.create_task(flow.opts(idempotency_key="order-1").submit_aio(7))
        await asyncio.to_thread(wait_until, lambda: held_up(app), "waiting")
        for n in range(10):
            assert await (await flow.submit_aio(n)) == n + 1
        assert not waits.done()
        await asyncio.to_thread(holder.rollback)
        job = await waits
        return job.created, await job

    with app.worker():
        assert asyncio.run(main()) == (True, 8)


def test_submissions_that_wait_keep_no_slot_of_the_worker(app: Tally, flow, holder) -> None:
    with app.worker(concurrency=2), ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(flow.opts(idempotency_key="order-1").submit, 1) for _ in range(4)]
        wait_until(lambda: len(app.runtime().committer._stragglers._waiting) == 4, "all of them wait")
        assert flow.submit(3).result(SECONDS) == 4
        wait_until(lambda: app.runtime().worker._demand.free == 2, "both slots are free")
        holder.commit()
        assert {wait.result(SECONDS).id for wait in waits} == {waits[0].result().id}


def test_after_a_while_the_submission_is_refused(subject: PostgresSubject, flow, holder) -> None:
    app = Tally(f"{subject.url}&busy=300ms")

    @app.workflow(name="flow")
    def again(n: int) -> int:
        return n + 1

    with pytest.raises(StoreBusy, match="another transaction holds rows or a key"):
        again.opts(idempotency_key="order-1").submit(1)
    assert again.submit(1).state() == "QUEUED"
    app.close()


def test_a_tally_that_is_closed_lets_go_who_waits(app: Tally, flow, holder) -> None:
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(flow.opts(idempotency_key="order-1").submit, 1)
        wait_until(lambda: held_up(app), "waiting")
        app.close()
        with pytest.raises(StoreMisused, match="closed while this waited"):
            waits.result(SECONDS)


def test_a_job_whose_row_is_held_ends_when_it_is_free_and_holds_up_no_other(
    app: Tally, subject: PostgresSubject
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @app.step
    def work(n: int) -> int:
        if n == 0:
            begun.set()
            go_on.wait(SECONDS)
        return n

    @app.workflow
    def steps(n: int) -> int:
        return work(n) + 1

    with app.worker(), psycopg.connect(subject.dsn, options=f"-c search_path={subject.schema}") as other:
        held = steps.submit(0)
        assert begun.wait(SECONDS)
        other.execute("SELECT 1 FROM jobs WHERE job_id = %s FOR UPDATE", [held.id])
        go_on.set()
        wait_until(lambda: held_up(app), "waiting")
        for n in range(1, 5):
            assert steps.submit(n).result(SECONDS) == n + 1
        assert held.state() == "IN_PROGRESS"
        other.rollback()
        assert held.result(SECONDS) == 1
