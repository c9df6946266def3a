"""A job says in one sentence why it stands where it stands."""

from __future__ import annotations

import re

import pytest

from tallystick import Retry, wait

WHEN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"


@pytest.fixture
def flow(timed):
    @timed.step(retry=Retry(3, first="1h"))
    def fragile(fails: list[int]) -> str:
        if fails:
            raise OSError("away")
        return "fine"

    @timed.workflow
    def flow(end: str) -> str:
        if end == "wait":
            return str(wait("approve", bool, timeout="2d"))
        if end == "retry":
            fragile([1])
        if end == "fail":
            raise ValueError("no")
        return end

    return flow


def says(job, pattern: str) -> bool:
    found = re.fullmatch(pattern.replace("WHEN", WHEN), job.why())
    assert found, job.why()
    return True


def test_it_tells_what_a_job_waits_for(hand, clock, flow):
    job = flow.submit("wait")
    assert says(job, "it waits since WHEN for a worker on queue default that knows flow")
    segment = hand.claim()
    assert says(job, "it runs since WHEN in attempt 1, or its worker was lost")
    hand.run(segment)
    assert says(job, "it waits since WHEN for approve#1 until WHEN")
    job.pause("the office is closed")
    assert says(job, r"it is held \(PAUSED\) since WHEN: the office is closed; resume it")
    job.resume()
    clock.advance(2 * 86_400_000)
    assert says(job, "it can go on since WHEN and waits for a worker on queue default")
    hand.work()
    assert says(job, "it succeeded at WHEN")


def test_it_tells_how_a_job_ended_or_goes_on(hand, flow):
    failed, cancelled, retried = (flow.submit(end) for end in ("fail", "wait", "retry"))
    later = flow.opts(delay="1h").submit("later")
    cancelled.cancel()
    hand.work_all()
    assert says(failed, "it failed at WHEN with .*: no")
    assert says(cancelled, "it was cancelled at WHEN")
    assert says(later, "it is not due before WHEN")
    assert says(retried, "it is tried again at WHEN")


def test_a_running_job_that_is_asked_to_end_cleans_up(hand, flow):
    job = flow.submit("")
    hand.claim()
    job.cancel()
    assert says(job, "it was asked to end at WHEN and cleans up")
