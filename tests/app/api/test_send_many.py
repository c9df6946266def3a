"""One call sends a signal to many jobs, in a few flushes, and wakes all of them."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import types

import pytest

from tallystick import Delivered, Tally, aio, wait
from tallystick.errors import NotFound
from tallystick.testing.stepping import count_flushes, is_at_rest
from tests.patience import wait_until

JOBS = 1_000
WAKE_SECONDS_MAX = 2.0
# Those of a worker and of its loop, whatever the number of jobs.
THREADS_MAX = 16
# A few more than one: the jobs that wake first share them.
FLUSHES_MAX = 4


def all_wait(app) -> bool:
    return is_at_rest(app)


def coroutines_of(name: str) -> int:
    gc.collect()
    return sum(
        isinstance(one, types.CoroutineType) and one.cr_code.co_name == name for one in gc.get_objects()
    )


def test_each_job_gets_the_signal_in_as_few_flushes_as_one_can(timed, hand):
    @timed.workflow
    def flow(n: int) -> int:
        return n + wait("go", int)

    jobs = flow.submit_many([(n,) for n in range(50)])
    hand.work_all()
    flushes = count_flushes(timed)
    assert timed.send_many(jobs, "go", 1, id="deploy") == [Delivered.WOKE] * 50
    assert count_flushes(timed) == flushes + 1
    assert timed.send_many(jobs, "go", 1, id="deploy") == [Delivered.KNOWN] * 50
    hand.work_all()
    assert [job.result(5) for job in jobs] == [n + 1 for n in range(50)]
    assert timed.send_many(jobs, "go", 1) == [Delivered.DROPPED] * 50
    assert timed.send_many([], "go") == []


def test_a_job_that_does_not_exist_spoils_nobody_elses_signal(timed, hand):
    @timed.workflow
    def flow() -> int:
        return wait("go", int)

    jobs = flow.submit_many([(), ()])
    with pytest.raises(NotFound, match="there is no job nobody"):
        timed.send_many([jobs[0], timed.job("nobody"), jobs[1]], "go", 1)
    with pytest.raises(NotFound):
        timed.job("nobody").send("go", 1)
    hand.work_all()
    assert [job.result(5) for job in jobs] == [1, 1]


def test_the_same_on_an_event_loop(timed, hand):
    @timed.workflow
    def flow() -> int:
        return wait("a", int) + wait("b", int)

    jobs = flow.submit_many([()] * 3)

    async def send() -> list[Delivered]:
        assert await jobs[0].send_aio("b", 10, id="x") is Delivered.KEPT
        await timed.send_many_aio(jobs[1:], "b", 10)
        return await timed.send_many_aio(jobs, "a", 1)

    assert asyncio.run(send()) == [Delivered.KEPT] * 3
    hand.work_all()
    assert [job.result(5) for job in jobs] == [11, 11, 11]


def test_signals_of_one_name_are_taken_in_the_order_of_their_arrival(timed, hand):
    """All in one millisecond, and with identifiers whose order is another one."""

    @timed.workflow
    def flow(n: int) -> list[int]:
        return [wait("n", int) for _ in range(n)]

    job = flow.submit(20)
    for n in range(10):
        job.send("n", n, id=f"{9 - n}")
    hand.work()
    for n in range(10, 20):
        job.send("n", n, id=f"{99 - n}")
    hand.work_all()
    assert job.result(5) == list(range(20))


def test_a_clock_that_is_set_back_puts_no_signal_before_an_earlier_one(timed, hand, clock):
    @timed.workflow
    def flow() -> list[int]:
        return [wait("n", int) for _ in range(3)]

    job = flow.submit()
    for n in range(3):
        job.send("n", n)
        clock.jump_wall(-5_000)
    clock.jump_wall(15_000)
    hand.work_all()
    assert job.result(5) == [0, 1, 2]


@pytest.mark.slow
def test_a_thousand_waiting_jobs_hold_nothing_and_wake_within_two_seconds(tmp_path):
    """On SQLite: by the clock where the machine is ours, and by the processor time that it takes."""
    app = Tally(f"sqlite:///{tmp_path}/shop.db")

    @app.workflow
    async def patient(n: int) -> int:
        return n + await aio.wait("go", int)

    others = threading.active_count()
    with app.worker(concurrency=64):
        jobs = patient.submit_many([(n,) for n in range(JOBS)])
        wait_until(lambda: all_wait(app), "rest")
        assert coroutines_of("patient") == 0
        assert threading.active_count() - others < THREADS_MAX
        flushes = count_flushes(app)
        wall, cpu = time.perf_counter(), time.process_time()
        assert app.send_many(jobs, "go", 1) == [Delivered.WOKE] * JOBS
        assert count_flushes(app) - flushes <= FLUSHES_MAX
        assert [job.result(60) for job in jobs] == [n + 1 for n in range(JOBS)]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    app.close()
    assert cpu <= WAKE_SECONDS_MAX
    assert wall <= WAKE_SECONDS_MAX or os.getloadavg()[0] > (os.cpu_count() or 1)
