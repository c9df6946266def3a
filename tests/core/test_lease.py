"""Lease rules: the fence in full, and the lengths of leases."""

from __future__ import annotations

from itertools import product

from tallystick.core import lease as rules
from tallystick.core.lifecycles import AttemptState
from tallystick.core.pictures import JobFacts, Lease, Picture, Pictures
from tallystick.core.remote.policy import budget_ms
from tallystick.store.api import Fence

JOB = JobFacts("j", "IN_PROGRESS", 2, 0, None, None, 1, 0, 0, None, None, None, 1, 1, None, None, 0, 0)


def test_a_report_is_accepted_exactly_with_the_right_attempt_lease_state_and_time():
    """The whole truth table: an expired worker cannot report, even if nobody took over."""
    for attempt, lease_id, status, live in product(
        (1, 2, 3), ("lease-1", "lease-2", ""), AttemptState, (False, True)
    ):
        pictures = Pictures({"j": Picture(JOB, Lease(2, "lease-2", status, live, "start"))})
        accepted = (attempt, lease_id, status, live) == (2, "lease-2", "IN_PROGRESS", True)
        assert (pictures.held(Fence("j", attempt, lease_id)) is not None) is accepted


def test_nobody_reports_for_a_job_that_nobody_holds_or_that_is_not_there():
    assert Pictures({"j": Picture(JOB)}).held(Fence("j", 2, "lease-2")) is None
    assert Pictures().held(Fence("j", 2, "lease-2")) is None


def test_the_timeouts_are_those_of_the_specification():
    assert rules.ACK_TIMEOUT_MS == 30_000
    assert rules.WORK_LEASE_MS == 15 * 60_000


def test_the_publish_lease_covers_every_wait_of_the_publish_budget():
    assert budget_ms(1) > 30_000 + 120_000 + 600_000
