"""Steps record when they began, and the history tells how long each of them took."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick import Fatal, Retry, StepFailed, set_value, wait
from tallystick.testing.stepping import check_books


def durations(job) -> list[tuple[str, int | None]]:
    """Return the kinds of the facts of a job that end something, with how many ms that took."""
    ends = [event for event in job.history() if event.name in ("step", "tx", "wait")]
    return [(event.name, event.took and event.took // timedelta(milliseconds=1)) for event in ends]


def test_the_history_tells_how_long_each_step_took(timed, hand, clock):
    @timed.step
    def slow(ms: int) -> None:
        clock.advance(ms)

    @timed.tx
    def write(_db) -> None:
        clock.advance(30)

    @timed.step
    def bad() -> None:
        clock.advance(40)
        raise Fatal("no")

    @timed.workflow
    def flow() -> None:
        slow(250)
        write()
        with pytest.raises(StepFailed):
            bad()
        set_value("stage", "last")
        slow(0)
        slow(60)

    job = flow.submit()
    hand.work_all()
    assert job.result(5) is None
    assert durations(job) == [("step", 250), ("tx", 30), ("step", 40), ("step", None), ("step", 60)]
    assert check_books(timed) == []


def test_of_a_step_that_was_tried_again_the_last_try_counts(timed, hand, clock):
    tries = [1, 2]

    @timed.step(retry=Retry(3, first="10s"))
    def slow() -> None:
        clock.advance(tries[0] * 100)
        if tries.pop(0) == 1:
            raise ConnectionError("away")

    @timed.workflow
    def flow() -> None:
        slow()

    job = flow.submit()
    hand.work_all()
    clock.advance(20_000)
    hand.work_all()
    assert job.result(5) is None
    assert durations(job) == [("step", 200)]


def test_a_wait_took_as_long_as_the_job_waited(timed, hand, clock):
    @timed.workflow
    def flow() -> str:
        return wait("go", str)

    job = flow.submit()
    hand.work_all()
    clock.advance(5_000)
    job.send("go", "now")
    hand.work_all()
    assert job.result(5) == "now"
    assert durations(job) == [("wait", 5_000)]


def test_copies_in_a_fork_took_no_time(timed, hand, clock):
    @timed.step
    def slow() -> None:
        clock.advance(100)

    @timed.workflow
    def flow() -> None:
        slow()
        slow()

    job = flow.submit()
    hand.work_all()
    fork = job.fork(at="slow#2")
    hand.work_all()
    assert durations(fork) == [("step", None), ("step", 100)]
