"""What `tally doctor` says of workers that were not heard of, on each store; time is the test's."""

from __future__ import annotations

import pytest

from tallystick.cli.commands.books.doctor import examine
from tallystick.testing.stepping import LEASE_MS, SteppedWorker

MINUTE_MS = 60_000


@pytest.fixture
def flow(timed):
    @timed.workflow
    def flow() -> int:
        return 1

    return flow


def problems(timed) -> list[str]:
    """Look at everything but the server, which tests run unsafely, and the books, which need a real clock."""
    seen = examine(timed.runtime().store, 0)
    return [problem for problem in seen.problems if problem not in seen.health.problems]


def test_a_worker_whose_leases_hold_is_no_problem(timed, hand, flow):
    flow.submit()
    hand.claim()
    assert problems(timed) == []


def test_a_lease_that_has_just_run_out_is_counted_and_blames_nobody(timed, hand, clock, flow):
    flow.submit()
    hand.claim()
    clock.advance(LEASE_MS)
    assert problems(timed) == ["1 lease ran out and no worker has taken the jobs over yet; start a worker"]


def test_a_worker_that_was_not_heard_of_for_long_is_named_with_how_long(timed, clock, flow):
    jobs = [flow.submit() for _ in range(2)]
    SteppedWorker(timed, clock, owner="a lost one").claim_many(2)
    clock.advance(LEASE_MS + 5 * MINUTE_MS)
    counted, named = problems(timed)
    assert counted == "2 leases ran out and no worker has taken the jobs over yet; start a worker"
    assert named.startswith(
        "worker a lost one has not been heard of since a lease of it ran out 5 minutes ago"
    )
    assert f"(2 jobs, one is {min(job.id for job in jobs)})" in named


def test_a_sweep_that_fails_is_told_from_one_that_nobody_makes(timed, clock, flow):
    flow.submit()
    SteppedWorker(timed, clock, owner="a lost one").claim()
    clock.advance(LEASE_MS + 5 * MINUTE_MS)
    flow.submit()
    assert not any("their sweep fails" in problem for problem in problems(timed))
    SteppedWorker(timed, clock, owner="at work").claim()
    assert any("their sweep fails" in problem for problem in problems(timed))
