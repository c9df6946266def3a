"""Histories that the model checker, or the reading it asked for, found broken; each told once by hand."""

from __future__ import annotations

from tallystick.app.children import gather
from tallystick.app.waits import again, sleep, wait
from tallystick.store.api import Deliver, Delivered
from tests.app.by_hand import Death

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
        job.cancel()
        return "all the same"

    job = flow.submit()
    hand.work()
    assert rows(timed, "select status, reason from attempts") == [("ABORTED", "CANCELLED")]
    assert job.history()[-1].name == "cancel"


def test_a_real_worker_announces_the_ending_that_was_written(app):
    import pytest

    from tallystick import JobCancelled

    @app.workflow
    def flow() -> str:
        app.job(job_id[0]).cancel()
        return "all the same"

    job_id: list[str] = []
    job = flow.submit()
    job_id.append(job.id)
    with app.worker(), pytest.raises(JobCancelled):
        job.result(10)


def test_a_child_that_returns_while_it_is_cancelled_counts_as_cancelled(timed, hand):
    @timed.workflow
    def child() -> None:
        timed.job(f"{job.id}.0.1.00000000").cancel()

    @timed.workflow
    def parent() -> None:
        gather(child.child())

    job = parent.submit()
    assert [hand.work(), hand.work()] == ["lost", "EndJob"]
    assert rows(timed, "select payload from messages where kind = 'child'") == [("CANCELLED",)]
    assert rows(timed, "select failed from steps") == [(1,)]


def test_a_job_that_turns_while_it_is_cancelled_is_cancelled(timed, hand):
    @timed.workflow
    def loop(turn: int) -> None:
        job.cancel()
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
    before = clock.wall_ms() + HOUR_MS - 1
    clock.advance(HOUR_MS)
    segment = hand.claim()
    timed.runtime().deliver(Deliver("late", job.id, "signal", "go", '"yes"', before))
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
    at = clock.wall_ms()
    deliver = timed.runtime().deliver
    assert deliver(Deliver("b", job.id, "signal", "n", "1", at)) is Delivered.WOKE
    segment = hand.claim()
    deliver(Deliver("a", job.id, "signal", "n", "2", at))
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
