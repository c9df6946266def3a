"""Histories that the model checker, or the reading it asked for, found broken; each told once by hand."""

from __future__ import annotations

import pytest

from tallystick import Delivered, JobCancelled, again, gather, sleep, wait
from tallystick.app.api.sending import deliver_one
from tallystick.core.ledger.decisions import Reclaim
from tallystick.engine.segment import GroupShape
from tallystick.store.api import Deliver, Group, ReclaimAttempt
from tallystick.testing.stepping import LEASE_MS, Death
from tests.elsewhere import elsewhere

HOUR_MS = 3_600_000


def rows(app, statement: str) -> list[tuple]:
    with app.transaction() as db:
        return db.execute(statement)


def test_a_signal_that_is_still_in_the_inbox_survives_a_turn(timed, hand, clock):
    @timed.workflow
    def loop(turn: int) -> int:
        if wait("n", int) == 1:
            again(turn + 1)
        return turn

    job = loop.submit(0)
    for n in (1, 2):
        job.send("n", n)
        clock.advance(1)
    assert [hand.work(), hand.work()] == ["Cycle", "EndJob"]
    assert job.result(5) == 1


def test_a_function_that_returns_while_its_job_is_cancelled_leaves_no_attempt_that_says_succeeded(
    timed, hand
):
    @timed.workflow
    def flow() -> str:
        elsewhere(job.cancel)
        return "all the same"

    job = flow.submit()
    hand.work()
    assert rows(timed, "select status, reason from attempts") == [("ABORTED", "CANCELLED")]
    assert job.history()[-1].name == "cancel"


def test_a_real_worker_announces_the_ending_that_was_written(app):
    @app.workflow
    def flow() -> str:
        elsewhere(app.job(job_id[0]).cancel)
        return "all the same"

    job_id: list[str] = []
    job = flow.submit()
    job_id.append(job.id)
    with app.worker(), pytest.raises(JobCancelled):
        job.result(10)


def test_a_child_that_returns_while_it_is_cancelled_counts_as_cancelled(timed, hand):
    @timed.workflow
    def child() -> None:
        elsewhere(timed.job(f"{job.id}.0.1.00000000").cancel)

    @timed.workflow
    def parent() -> None:
        gather(child.child())

    job = parent.submit()
    assert [hand.work(), hand.work()] == ["Await", "EndJob"]
    assert rows(timed, "select payload from messages where kind = 'child'") == [("CANCELLED",)]
    assert rows(timed, "select failed from steps") == [(1,)]


def test_a_job_that_turns_while_it_is_cancelled_is_cancelled(timed, hand):
    @timed.workflow
    def loop(turn: int) -> None:
        elsewhere(job.cancel)
        again(turn + 1)

    job = loop.submit(0)
    hand.work()
    assert job.state() == "CANCELLED"
    assert job.row().semaphore == 0


def test_the_message_that_drives_a_segment_is_the_one_it_takes_even_if_an_older_one_comes_late(
    timed, hand, clock
):
    """Two senders need not reach the store in the order of their clocks."""
    deaths = [1]

    @timed.workflow
    def flow() -> str:
        answer = wait("go", str, timeout="1h")
        if deaths:
            deaths.pop()
            raise Death
        return str(answer)

    job = flow.submit()
    hand.work()
    clock.advance(HOUR_MS)
    segment = hand.claim()
    deliver_one(timed.runtime(), Deliver("late", job.id, "signal", "go", '"yes"'))
    assert hand.run(segment) == "died"
    assert job.row().semaphore == 1
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "None"


def test_two_signals_of_one_name_that_arrive_against_their_order_are_both_taken(timed, hand, clock):
    @timed.workflow
    def flow() -> list[int]:
        return [wait("n", int), wait("n", int)]

    job = flow.submit()
    hand.work()
    runtime = timed.runtime()
    assert deliver_one(runtime, Deliver("b", job.id, "signal", "n", "1")) is Delivered.WOKE
    segment = hand.claim()
    deliver_one(runtime, Deliver("a", job.id, "signal", "n", "2"))
    assert hand.run(segment) == "EndJob"
    assert job.result(5) == [1, 2]
    assert job.row().semaphore == 0


def test_a_signal_that_is_named_like_a_sleep_does_not_wake_it(timed, hand, clock):
    @timed.workflow
    def flow() -> None:
        sleep("1h")

    job = flow.submit()
    hand.work()
    assert job.send("sleep", 1) is Delivered.KEPT
    assert hand.work() == "idle"
    clock.advance(HOUR_MS)
    assert hand.work() == "EndJob"
    closer = rows(timed, "select ledger from messages where kind = 'timer'")
    assert closer == [(111_100_000_001,)]


def test_a_signal_that_nobody_waited_for_is_acknowledged_when_its_job_ends(timed, hand):
    @timed.workflow
    def flow() -> None: ...

    job = flow.submit()
    job.send("x", 1)
    hand.work()
    assert rows(timed, "select count(*) from messages where acked_at is null") == [(0,)]


def test_a_loop_that_is_killed_once_a_turn_is_not_poison(timed, hand):
    """A turn is progress, although it leaves no step behind."""
    killed: set[int] = set()

    @timed.workflow
    def loop(turn: int) -> int:
        if turn not in killed:
            killed.add(turn)
            raise Death
        if turn < 5:
            again(turn + 1)
        return turn

    job = loop.submit(0)
    for _ in range(6):
        assert hand.work() == "died"
        hand.expire()
        hand.work()
    assert job.result(5) == 5


def test_a_sweep_that_decided_on_an_old_look_does_not_end_the_next_attempt(timed, hand, clock):
    @timed.workflow
    def flow() -> None: ...

    job = flow.submit()
    hand.claim()
    clock.advance(LEASE_MS)
    runtime = timed.runtime()
    (seen,) = runtime.store.expired(10)
    job.cancel(grace="1h")
    assert runtime.committer.call((ReclaimAttempt(seen.fence),)) is Reclaim.SETTLE
    assert runtime.committer.call((ReclaimAttempt(seen.fence),)) is Reclaim.LEAVE
    assert job.state() == "CANCELLED"


def test_a_parent_that_lost_its_worker_after_spawning_can_be_cancelled_before_it_spawns_again(timed, hand):
    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def parent() -> None:
        gather(child.child())

    job = parent.submit()
    runtime = timed.runtime()
    spawning = hand.claim().spawning(
        Group(0, "gather", 1), [child.child().submission], 0, GroupShape(1, 0, fail_fast=False)
    )
    runtime.committer.call(spawning)
    hand.expire()
    segment = hand.claim()
    job.cancel(grace="1h")
    runtime.committer.call(segment.cancelled_by_request())
    assert job.state() == "CANCELLED"
    assert job.row().semaphore == 0
