"""Cancelling ends a job, cleanly or when its grace is over; a cycle is the same job without its past."""

from __future__ import annotations

import threading

import pytest

from tallystick import Cancelled, ChildrenFailed, JobCancelled, JobFailed, again, gather, sleep, wait
from tallystick.testing.stepping import Death, cancel_overdue, check_books
from tests.elsewhere import elsewhere


def test_a_job_that_nobody_has_begun_is_cancelled_at_once(timed, hand):
    @timed.workflow
    def flow() -> None: ...

    job = flow.submit()
    assert job.cancel() == "CANCELLED"
    assert hand.work() == "idle"
    with pytest.raises(JobCancelled):
        job.result(5)
    assert job.cancel() == "CANCELLED"
    with timed.transaction() as db:
        ((semaphore, root, start),) = db.execute("select semaphore, root_ledger, start_ledger from jobs")
        words = db.execute("select guid, ledger, acked_at is not null from messages")
    assert (semaphore, f"{root:015d}", start) == (0, "001111100000001", 0)
    assert words == [(f"cancel:{job.id}", 111_100_000_001, 1)]


def test_a_waiting_job_is_cancelled_at_once_and_everything_it_had_open_with_it(timed, hand):
    @timed.workflow
    def flow() -> None:
        wait("go", bool, timeout="1d")

    job = flow.submit()
    hand.work()
    assert job.cancel() == "CANCELLED"
    with timed.transaction() as db:
        assert db.execute("select distinct state from steps") == [("CANCELLED",)]
        assert db.execute("select count(*) from messages where acked_at is null") == [(0,)]
    assert [event.name for event in job.history()][-1] == "cancel"


def test_a_running_job_meets_its_cancellation_at_the_next_call_and_may_clean_up(timed, hand):
    done = []

    @timed.step
    def work(name: str) -> None:
        done.append(name)

    @timed.workflow
    def flow() -> None:
        work("first")
        assert elsewhere(job.cancel, grace="1m") == "CANCELLING"
        segment.cancelled = True  # what maintenance does when it sees it
        try:
            work("second")
        except Cancelled:
            work("clean up")
            raise

    job = flow.submit()
    segment = hand.claim()
    assert hand.run(segment) == "EndJob"
    assert done == ["first", "clean up"]
    assert job.state() == "CANCELLED"


def test_the_books_of_a_job_that_is_being_cancelled_balance_at_every_stage(timed, hand, clock):
    """Asked to end while it runs, given back by its worker, taken up again, ended."""

    def findings():
        return check_books(timed)

    @timed.step
    def work(name: str) -> None: ...

    @timed.workflow
    def flow() -> None:
        work("first")
        assert elsewhere(job.cancel, grace="1m") == "CANCELLING"
        assert elsewhere(findings) == []
        work("second")

    job = flow.submit()
    segment = hand.claim()
    assert job.cancel(grace="1m") == "CANCELLING"
    assert findings() == []
    hand.give_back(segment)
    assert (job.state(), findings()) == ("CANCELLING", [])
    hand.work()
    assert (job.state(), findings()) == ("CANCELLED", [])


def test_a_job_that_returns_while_it_is_being_cancelled_is_cancelled(timed, hand):
    @timed.workflow
    def flow() -> str:
        elsewhere(job.cancel)
        return "finished all the same"

    job = flow.submit()
    assert hand.work() == "EndJob"
    with pytest.raises(JobCancelled):
        job.result(5)
    assert job.row().result is None


def test_when_the_grace_is_over_the_holder_is_fenced(timed, hand, clock):
    @timed.step
    def work() -> None: ...

    @timed.workflow
    def stubborn() -> None:
        elsewhere(job.cancel, grace="1s")
        clock.advance(1_000)
        assert len(cancel_overdue(timed)) == 1
        work()

    job = stubborn.submit()
    assert hand.work() == "lost"
    assert job.state() == "CANCELLED"


def test_a_worker_that_dies_while_its_job_is_being_cancelled_leaves_it_cancelled(timed, hand):
    @timed.workflow
    def flow() -> None:
        elsewhere(job.cancel, grace="1h")
        raise Death

    job = flow.submit()
    assert hand.work() == "died"
    hand.expire()
    assert job.state() == "CANCELLED"


def test_a_cancelled_child_counts_for_its_parent(timed, hand):
    @timed.workflow
    def child() -> None:
        wait("never", bool)

    @timed.workflow
    def parent() -> None:
        gather(child.child())

    job = parent.submit()
    assert [hand.work(), hand.work()] == ["Await", "Await"]
    timed.job(f"{job.id}.0.1.00000000").cancel()
    assert hand.work() == "EndJob"
    with pytest.raises(JobFailed, match="was cancelled"):
        job.result(5)


def test_a_real_worker_notices_a_cancellation(app):
    started, seen = threading.Event(), []

    @app.step
    def tick() -> None: ...

    @app.workflow
    def endless() -> None:
        try:
            while True:
                tick()
                started.set()
        except Cancelled:
            seen.append("cleaned up")
            raise

    with app.worker():
        job = endless.submit()
        assert started.wait(10)
        elsewhere(job.cancel)
        with pytest.raises(JobCancelled):
            job.result(10)
    assert seen == ["cleaned up"]


def test_a_cycle_is_the_same_job_with_an_empty_history(timed, hand):
    turns = []

    @timed.step
    def work(n: int) -> int:
        turns.append(n)
        return n

    @timed.workflow
    def loop(n: int, target: int = 5) -> int:
        work(n)
        return again(n + 1, target=target) if n < target else n

    job = loop.submit(1)
    assert [hand.work() for _ in range(5)] == ["Cycle"] * 4 + ["EndJob"]
    assert job.result(5) == 5
    assert turns == [1, 2, 3, 4, 5]
    with timed.transaction() as db:
        jobs = db.execute("select dimension, semaphore, root_ledger, start_ledger from jobs")
        words = db.execute("select dimension, ledger from messages order by dimension")
    assert jobs == [(4, 0, 1_111_100_000_005, 11_000_000_001)]
    # Each turn is a message of the root with its own entry; the last one closes the job.
    turned = [(turn, 11_000_000_001 + turn) for turn in (1, 2, 3)]
    assert words == [*turned, (4, 111_100_000_005)]


def test_cycles_with_waits_and_crashes_keep_the_books(timed, hand, clock):
    deaths = [3, 1]

    @timed.workflow
    def loop(n: int) -> int:
        sleep("1m")
        if deaths and deaths[-1] == n:
            deaths.pop()
            raise Death
        return again(n + 1) if n < 4 else n

    job = loop.submit(1)
    for _ in range(40):
        outcome = hand.work()
        if outcome == "died":
            hand.expire()
        elif outcome == "idle":
            clock.advance(60_000)
        if job.row().completed_at is not None:
            break
    assert job.result(5) == 4
    with timed.transaction() as db:
        assert db.execute("select semaphore, dimension from jobs") == [(0, 3)]
        assert db.execute("select count(*) from messages where acked_at is null") == [(0,)]
        assert db.execute("select count(*) from steps where completed_at is null") == [(0,)]


def test_at_the_ceiling_of_turns_the_job_fails_with_a_clear_code(timed, hand):
    @timed.workflow
    def loop() -> None:
        again()

    job = loop.submit()
    with timed.transaction() as db:
        full = "update jobs set root_ledger = 1100099999999, start_ledger = 99999999, dimension = 99999998"
        db.execute(f"{full} where job_id = '{job.id}'")
    segment = hand.claim()
    outcome = hand.run(segment)
    assert outcome == "EndJob"
    with pytest.raises(JobFailed) as failed:
        job.result(5)
    assert failed.value.fields["error_code"] == "LEDGER_CEILING"


def test_children_whose_parent_ends_without_them_are_cancelled(timed, hand, clock):
    @timed.workflow
    def child() -> None:
        wait("never", bool)

    @timed.workflow
    def parent() -> None:
        gather(child.child(), child.child())

    job = parent.submit()
    assert [hand.work() for _ in range(3)] == ["Await"] * 3
    job.cancel()
    assert len(cancel_overdue(timed)) == 2
    assert cancel_overdue(timed) == []
    with timed.connect() as db:
        assert db.execute("select state, count(*) from jobs group by state") == [("CANCELLED", 3)]


def test_the_siblings_of_a_failed_child_are_asked_to_end_when_the_first_failure_is_enough(timed, hand):
    @timed.workflow
    def child(n: int) -> None:
        if n == 0:
            raise ValueError("first")
        wait("never", bool)

    @timed.workflow
    def parent() -> str:
        try:
            gather(child.child(0), child.child(1), child.child(2), fail_fast=True)
        except ChildrenFailed:
            return "handled"
        return "fine"

    job = parent.submit()
    hand.work_all()
    assert job.result(5) == "handled"
    with timed.connect() as db:
        told = (
            "select state, count(*) from jobs where parent_job_id is not null group by state order by state"
        )
        ended = db.execute(told)
    assert ended == [("CANCELLED", 2), ("FAILED_FINAL", 1)]
