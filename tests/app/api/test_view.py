"""What users see of a job is derived from its attempts, and the stored state agrees with it at all times."""

from __future__ import annotations

import pytest

from tallystick import RemoteStep, Retry, again, wait
from tallystick.errors import NotFound
from tallystick.testing.remote_hand import RemoteHand, expire_remote
from tallystick.testing.stepping import LEASE_MS, Death, check_books


@pytest.fixture
def seen(timed):
    """The view of a job; what is stored must agree with it."""

    def seen(job) -> str:
        assert check_books(timed) == []
        return job.view().value

    return seen


def test_a_job_from_the_queue_to_its_result(timed, hand, clock, seen):
    @timed.workflow
    def flow() -> int:
        wait("go", bool)
        return 1

    job = flow.submit()
    assert seen(job) == "PENDING"
    hand.claim()
    assert seen(job) == "RUNNING"
    clock.advance(LEASE_MS)
    assert (seen(job), job.state()) == ("PENDING", "IN_PROGRESS")
    hand.expire()
    assert seen(job) == "PENDING"
    hand.work()
    assert (seen(job), job.state()) == ("PENDING", "IN_PROGRESS")
    job.send("go", True)
    segment = hand.claim()
    assert seen(job) == "RUNNING"
    hand.run(segment)
    assert seen(job) == "SUCCEEDED"


def test_the_other_ends(timed, hand, clock, seen):
    @timed.workflow
    def broken() -> None:
        raise ValueError("no")

    @timed.workflow(attempts=2)
    def deadly() -> None:
        raise Death

    failed, spent, cancelled = broken.submit(), deadly.submit(), deadly.submit()
    cancelled.cancel()
    hand.work()
    for _ in range(2):
        assert (seen(spent), hand.work()) == ("PENDING", "died")
        hand.expire()
    assert [seen(job) for job in (failed, spent, cancelled)] == ["FAILED", "FAILED", "CANCELLED"]
    with pytest.raises(NotFound):
        timed.job("nobody").view()


def test_errors_are_judged_by_the_policy_of_the_workflow_and_not_by_the_budget(timed, hand, clock, seen):
    @timed.workflow(attempts=1, retry=Retry(3, first="1m"))
    def stubborn() -> None:
        raise ValueError("again")

    job = stubborn.submit()
    hand.work()
    assert seen(job) == "PENDING"
    clock.advance(60_000)
    segment = hand.claim()
    hand.give_back(segment)
    assert seen(job) == "PENDING"
    hand.claim()
    assert seen(job) == "RUNNING"
    clock.advance(LEASE_MS)
    assert seen(job) == "PENDING"
    hand.expire()
    assert seen(job) == "FAILED"


def test_what_was_lost_before_a_turn_is_forgiven(timed, hand, seen):
    deaths = [1, 1]

    @timed.workflow(attempts=2)
    def loop(n: int) -> int:
        if len(deaths) + n == 2:
            deaths.pop()
            raise Death
        return again(n + 1) if n < 1 else n

    job = loop.submit(0)
    for told in ("died", "Cycle", "died"):
        assert hand.work() == told
        if told == "died":
            hand.expire()
        assert seen(job) == "PENDING"
    hand.work()
    assert seen(job) == "SUCCEEDED"


@pytest.mark.parametrize("end", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_a_protocol_job_from_its_command_to_its_end(timed, clock, seen, end):
    steps = [RemoteStep("one", service="a"), RemoteStep("two", service="b")]
    protocol = timed.protocol("p", request_types=["scan"], steps=steps)
    first, second = RemoteHand(timed, "a"), RemoteHand(timed, "b")
    about = {"tenant_id": "acme", "request_type": "scan", "input_ref": "in", "output_ref": "out"}
    job = protocol.submit({**about, "payload": {}, "schema_version": "v1"})
    assert seen(job) == "RUNNING"
    directive = first.take()
    assert seen(job) == "RUNNING"
    directive.fail("BUSY", again=True)
    assert (seen(job), job.state()) == ("PENDING", "IN_PROGRESS")
    clock.advance(60_000)
    expire_remote(timed)
    directive = first.take()
    directive.ack()
    assert seen(job) == "RUNNING"
    job.pause()
    directive.succeed(1)
    assert (seen(job), job.state()) == ("PENDING", "IN_PROGRESS")
    job.resume()
    expire_remote(timed)
    if end == "CANCELLED":
        job.cancel()
    else:
        directive = second.take()
        directive.succeed(2) if end == "SUCCEEDED" else directive.fail("BROKEN")
    assert seen(job) == end
