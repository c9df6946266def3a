"""A job that was asked to end is cancelled, whatever its function does then, and its books say so."""

from __future__ import annotations

import threading

import pytest

from tallystick import Cancelled, Fatal, JobCancelled, JobFailed, again, gather, sleep, wait
from tallystick.testing.stepping import check_books
from tests.elsewhere import elsewhere


def cancelled_cleanly(timed, clock, job) -> bool:
    assert not check_books(timed)
    with timed.transaction() as db:
        attempts = db.execute(f"select status, reason from attempts where job_id = '{job.id}'")
        semaphores = db.execute(f"select semaphore from jobs where job_id = '{job.id}'")
        assert db.execute("select count(*) from messages where acked_at is null") == [(0,)]
    assert attempts[-1] == ("ABORTED", "CANCELLED")
    assert semaphores == [(0,)]
    return job.history()[-1].name == "cancel"


@pytest.mark.parametrize("ending", ["return", "fail", "turn"])
@pytest.mark.parametrize("waits", [True, False], ids=["after a wait", "at once"])
def test_the_end_of_a_job_that_was_asked_to_end_is_a_cancellation(timed, hand, clock, ending, waits):
    @timed.workflow
    def flow() -> str:
        if waits:
            sleep("1m")
        elsewhere(job.cancel)
        if ending == "turn":
            again()
        if ending == "fail":
            raise Fatal("no")
        return "finished all the same"

    job = flow.submit()
    hand.work()
    clock.advance(60_000)
    hand.work()
    assert job.state() == "CANCELLED"
    assert job.row().result is None
    assert cancelled_cleanly(timed, clock, job)


def test_a_parent_counts_a_child_that_returned_while_it_was_being_cancelled_as_cancelled(timed, hand, clock):
    @timed.workflow
    def child() -> str:
        elsewhere(timed.job(child_id).cancel)
        return "finished all the same"

    @timed.workflow
    def parent() -> None:
        gather(child.child())

    job = parent.submit()
    child_id = f"{job.id}.0.1.00000000"
    hand.work_all()
    with pytest.raises(JobFailed, match="was cancelled"):
        job.result(5)
    with timed.transaction() as db:
        assert db.execute("select payload from messages where kind = 'child'") == [("CANCELLED",)]
        assert db.execute("select failed from steps where kind = 'group'") == [(1,)]


def test_whoever_waits_in_the_process_of_the_worker_hears_that_the_job_was_cancelled(app):
    began, go_on = threading.Event(), threading.Event()

    @app.workflow
    def flow() -> str:
        began.set()
        go_on.wait(10)
        return "finished all the same"

    with app.worker():
        job = flow.submit()
        assert began.wait(10)
        elsewhere(job.cancel)
        go_on.set()
        with pytest.raises(JobCancelled):
            job.result(10)


@pytest.mark.parametrize("begun", [True, False])
def test_the_books_of_a_job_cancelled_while_nobody_ran_it_are_right(timed, hand, clock, begun):
    @timed.workflow
    def flow() -> None:
        sleep("1m")

    job = flow.submit()
    if begun:
        hand.work()
        assert not check_books(timed)
    assert job.cancel() == "CANCELLED"
    assert cancelled_cleanly(timed, clock, job)


@pytest.mark.parametrize("what", ["wait", "gather"])
def test_a_job_asked_to_end_on_its_way_to_a_wait_meets_that_at_the_wait(timed, hand, clock, what):
    """It must not sleep through its grace."""
    cleaned = []

    @timed.step
    def clean_up() -> None:
        cleaned.append(what)

    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def flow() -> None:
        elsewhere(job.cancel, grace="1h")
        try:
            if what == "wait":
                wait("go", bool, timeout="1d")
            else:
                gather(child.child())
        except Cancelled:
            clean_up()
            raise

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert cleaned == [what]
    assert cancelled_cleanly(timed, clock, job)


def test_whoever_takes_over_a_job_that_was_asked_to_end_knows_it_from_the_start(timed, hand, clock):
    cleaned, leaving = [], [1]

    @timed.step
    def work() -> None: ...

    @timed.step
    def clean_up(n: int) -> None:
        cleaned.append(n)

    @timed.workflow
    def flow() -> None:
        try:
            while True:
                work()
                segment.cancelled = True
        except Cancelled:
            clean_up(1)
            if leaving:
                leaving.pop()
                segment.lost = True
            clean_up(2)
            raise

    job = flow.submit()
    segment = hand.claim()
    job.cancel(grace="1h")
    assert hand.run(segment) == "EndAttempt"
    segment = hand.claim()
    assert hand.run(segment) == "EndJob"
    assert cleaned == [1, 2]
    assert cancelled_cleanly(timed, clock, job)
