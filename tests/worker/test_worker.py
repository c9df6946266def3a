"""A real worker with real threads and a real loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallystick import JobFailed, Tally, Tx
from tallystick.errors import Misuse, StepTimeout
from tests.patience import wait_until


def test_many_jobs_of_both_colours_all_end_and_the_books_balance(app, put):
    with app.transaction() as db:
        db.execute("create table effects (job integer)")

    @app.step
    def twice(n: int) -> int:
        return n * 2

    @app.step
    async def thrice(n: int) -> int:
        return n * 3

    @app.tx
    def note(db: Tx, n: int) -> None:
        db.execute(put, [n])

    @app.workflow
    def sync_flow(n: int) -> int:
        note(n)
        return twice(n)

    @app.workflow
    async def async_flow(n: int) -> int:
        await note.aio(n)
        return await thrice(n)

    jobs = sync_flow.submit_many([(n,) for n in range(100)])
    jobs += async_flow.submit_many([(n,) for n in range(100, 200)])
    with app.worker(concurrency=16):
        results = [job.result(30) for job in jobs]
    assert results == [n * 2 for n in range(100)] + [n * 3 for n in range(100, 200)]
    with app.transaction() as db:
        assert sorted(db.execute("select job from effects")) == [(n,) for n in range(200)]
        left = db.execute("select count(*) from attempts where status not in ('DONE')")
        books = db.execute("select distinct state, semaphore, start_ledger from jobs")
        digits = db.execute("select distinct ledger from steps")
    assert left == [(0,)]
    assert books == [("SUCCEEDED", 0, 111_100_000_001)]
    assert digits == [(1_111_000_000_001,)]


def test_a_job_submitted_where_a_worker_runs_is_claimed_in_the_same_bundle(app):
    @app.workflow
    def flow() -> str:
        return "done"

    with app.worker():
        flow.submit().result(10)  # the worker has looked for work once by now
        job = flow.submit()
        assert job.row().attempt == 1  # durable when submit returns, and taken by then
        assert job.result(10) == "done"
    assert [event.name for event in job.history()] == ["submit", "claim", "return"]


def test_a_job_submitted_by_another_process_is_found_without_being_told(url):
    here, there = Tally(url), Tally(url)

    for tally in (here, there):
        tally.workflow(name="flow")(_answer)
    with here.worker():
        job = there.workflows["flow", ""].submit(20)
        assert job.result(10) == 21
    here.close()
    there.close()


def _answer(n: int) -> int:
    return n + 1


def test_a_job_can_be_awaited(app):
    @app.workflow
    def flow(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    async def main():
        with app.worker():
            with pytest.raises(JobFailed):
                await flow.submit(-1)
            return await flow.submit(5)

    assert asyncio.run(main()) == 5


def test_waiting_for_a_result_can_time_out_and_be_taken_up_again(app):
    @app.workflow
    def flow() -> int:
        return 1

    job = flow.submit()
    with pytest.raises(TimeoutError):
        job.result(0.01)
    with app.worker():
        assert job.result(10) == 1


def test_a_sync_step_that_takes_too_long_is_given_up(app):
    release = threading.Event()

    @app.step(timeout="20ms")
    def slow() -> None:
        release.wait(10)

    @app.workflow
    def flow() -> None:
        slow()

    with app.worker():
        with pytest.raises(JobFailed) as failed:
            flow.submit().result(10)
        release.set()
    assert "StepTimeout" in str(failed.value)


def test_an_async_step_that_takes_too_long_is_cancelled(app):
    ended = []

    @app.step(timeout="20ms")
    async def slow() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.append("cancelled")

    @app.workflow
    async def flow() -> None:
        await slow()

    with app.worker(), pytest.raises(JobFailed, match="StepTimeout"):
        flow.submit().result(10)
    assert ended == ["cancelled"]
    assert StepTimeout.code == "STEP_TIMEOUT"


def test_a_stopping_worker_lets_running_jobs_end(app):
    started, go = threading.Event(), threading.Event()

    @app.workflow
    def flow() -> str:
        started.set()
        go.wait(10)
        return "ended in the grace"

    job = flow.submit()
    with ThreadPoolExecutor(1) as pool, app.worker(grace="10m"):
        assert started.wait(10)
        stopping = pool.submit(app.runtime().stop_worker)
        wait_until(app.runtime().worker.halting.is_set, "it stops")
        go.set()
        assert stopping.result(10)
    assert job.state() == "SUCCEEDED"


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_job_that_outlives_the_grace_gives_its_lease_back_for_the_next_worker(app, colour):
    started, go, runs = threading.Event(), threading.Event(), []

    @app.step
    def work(n: int) -> int:
        runs.append(n)
        return n

    def wait_once() -> None:
        if not go.is_set():
            started.set()
            go.wait(10)

    if colour == "sync":

        @app.workflow
        def flow() -> int:
            first = work(1)
            wait_once()
            return first + work(2)

    else:

        @app.workflow
        async def flow() -> int:
            first = await work.aio(1)
            while not go.is_set():
                started.set()
                await asyncio.sleep(0.01)
            return first + await work.aio(2)

    job = flow.submit()
    # A task is left at once. A thread comes to its next call only afterwards, and is left to its lease.
    with app.worker(grace="2s" if colour == "async" else "50ms"):
        assert started.wait(10)
    go.set()
    if colour == "async":
        assert job.row().ready_at is not None
    with app.worker():
        assert job.result(20) == 3
    assert runs == [1, 2]
    assert "release" in {event.name for event in job.history()}


def test_one_worker_a_process_and_tally(app):
    with app.worker(), pytest.raises(Misuse, match="already has a worker"), app.worker():
        pass


def test_a_tally_can_be_closed_and_used_again(app):
    @app.workflow
    def flow() -> int:
        return 1

    with app.worker():
        assert flow.submit().result(10) == 1
    app.close()
    with app.worker():
        assert flow.submit().result(10) == 1


def test_without_a_retention_nothing_is_looked_at(app):
    with app.worker():
        assert "prune" not in app.runtime()._maintenance.roles
