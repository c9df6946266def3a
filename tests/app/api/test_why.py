"""A job says in one sentence why it stands where it stands."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tallystick import Retry, Tally, gather, sleep, wait
from tallystick.testing.stepping import cancel_overdue

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
    assert says(job, "it has waited since WHEN for a worker on queue default that knows flow")
    segment = hand.claim()
    assert says(
        job, "it has been running since WHEN in attempt 1, on worker stepped, whose lease holds until WHEN"
    )
    hand.run(segment)
    assert says(job, "it has waited since WHEN for the signal approve until WHEN")
    job.pause("the office is closed")
    assert says(job, r"it has been held \(PAUSED\) since WHEN: the office is closed; resume it")
    job.resume()
    clock.advance(2 * 86_400_000)
    assert says(job, "it has been ready since WHEN and waits for a worker on queue default")
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
    assert says(retried, r"it failed \(OSError: away\) and is tried again at WHEN")


def test_a_running_job_that_is_asked_to_end_cleans_up(hand, flow):
    job = flow.submit("")
    hand.claim()
    job.cancel()
    ends = "it is ended at WHEN if it has not by then"
    assert says(job, f"it was asked to end and cleans up; {ends}")
    # Who asks by name is on the books, with the instant.
    named = flow.submit("")
    hand.claim()
    named.cancel(by="ann")
    assert says(named, f"it was asked to end at WHEN and cleans up; {ends}")


def test_a_job_that_runs_beyond_its_deadline_is_asked_to_end_in_whole_words(timed, hand, clock, flow):
    job = flow.opts(deadline="5s").submit("")
    hand.claim()
    clock.advance(5_000)
    cancel_overdue(timed)
    assert says(
        job,
        "it was asked to end because its deadline passed at WHEN and cleans up; it is ended at WHEN if it "
        "has not by then",
    )
    assert (job.why().since.timestamp() * 1000, job.row().state) == (clock.wall_ms(), "CANCELLING")


def test_a_sentence_has_its_instants_and_what_a_person_can_do(hand, clock, flow):
    job = flow.submit("wait")
    assert job.why().actions == ("tally work APP --queues default", f"tally cancel {job.id}")
    hand.work()
    said = job.why()
    assert str(said) == said
    assert (said.since.timestamp() * 1000, said.until - said.since) == (clock.wall_ms(), timedelta(days=2))
    assert said.actions == (f"tally send {job.id} approve VALUE", f"tally cancel {job.id}")
    assert said.child is None
    job.pause("lunch")
    assert job.why().actions == (f"tally resume {job.id}", f"tally cancel {job.id}")


def test_a_parent_tells_of_a_child_that_it_waits_for(timed, hand):
    @timed.workflow
    def child() -> None:
        wait("go", bool)

    @timed.workflow
    def parent() -> None:
        gather(child.child(), child.child())

    job = parent.submit()
    hand.work()
    (first, second) = job.children()
    hand.work_all()
    assert says(
        job,
        f"it has waited since WHEN for 2 more children of gather to end; the child {first.id}: "
        "it has waited since WHEN for the signal go",
    )
    assert job.why().child == first.why()
    first.send("go", True)
    hand.work_all()
    said = job.why()
    assert said.child == second.why()
    assert "1 more child of gather" in said


def test_a_lost_worker_a_deadline_and_a_sleep_are_told(timed, hand, clock):
    @timed.workflow
    def sleeps() -> None:
        sleep("1h")

    job = sleeps.opts(deadline="1d").submit()
    hand.claim()
    clock.advance(60_000)
    assert says(
        job,
        "worker stepped was lost with attempt 1: its lease ended at WHEN, and the next sweep of a worker "
        "takes the job back; it is cancelled at WHEN if it has not ended by then",
    )
    hand.expire()
    hand.work_all()
    assert says(
        job, "it has waited since WHEN for the end of sleep until WHEN; it is cancelled at WHEN if .*"
    )
    clock.advance(86_400_000)
    assert says(job, "its deadline passed at WHEN, and the next sweep of a worker cancels it")


def test_a_try_that_failed_is_told_while_the_job_runs(timed, hand, clock):
    @timed.step(retry=Retry(3, first="3s"))
    def fragile() -> None:
        said.append(job.why())
        raise OSError("away")

    @timed.workflow
    def flow() -> None:
        fragile()

    said: list[str] = []
    job = flow.submit()
    hand.work()
    assert "step fragile" not in said[0]
    assert "; step fragile failed (OSError: away) and is tried again at" in said[-1]


def test_a_program_says_that_it_does_not_know_the_workflow(url):
    knows, works = Tally(url), Tally(url)

    @knows.workflow(version="2")
    def flow() -> None: ...

    @works.workflow(name="flow")
    def older() -> None: ...

    job = flow.submit()
    with works.worker():
        said = works.job(job.id).why()
    assert said.endswith("for a worker on queue default that knows flow 2; this program does not know flow 2")
    knows.close()
    works.close()
