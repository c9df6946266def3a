"""Lease rules: the fence in full, and renewals that neither revive nor shorten."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core import lease as rules
from tallystick.core.durations import duration_ms
from tallystick.core.lease import Held, Lease, Stale, StaleReason, fence, heartbeat_ms, is_live, renew

EXPIRES = 1_000
ROW = Lease(attempt=2, lease_id="lease-2", owner="worker-a", expires_at=EXPIRES)
ALLOWED = frozenset({"LEASED", "IN_PROGRESS"})

instants = st.integers(min_value=0, max_value=2**53)


def test_a_lease_is_over_at_the_very_instant_of_its_end():
    assert is_live(EXPIRES - 1, EXPIRES)
    assert not is_live(EXPIRES, EXPIRES)
    assert not is_live(EXPIRES + 1, EXPIRES)
    assert not is_live(0, None)


def test_a_report_is_held_exactly_with_the_right_attempt_lease_state_and_time():
    """The whole truth table; the reason is the first that applies."""
    cases = product(
        (ROW, None),
        (1, 2, 3),
        ("lease-1", "lease-2", ""),
        ("LEASED", "IN_PROGRESS", "COMMITTED", "DONE", "ABORTED"),
        (0, EXPIRES - 1, EXPIRES, EXPIRES + 1),
    )
    for row, attempt, lease_id, state, now in cases:
        faults = [
            reason
            for reason, applies in (
                (StaleReason.NOT_LEASED, row is None),
                (StaleReason.OTHER_ATTEMPT, attempt != 2),
                (StaleReason.OTHER_LEASE, lease_id != "lease-2"),
                (StaleReason.WRONG_STATE, state not in {"LEASED", "IN_PROGRESS"}),
                (StaleReason.EXPIRED, now >= EXPIRES),
            )
            if applies
        ]
        verdict = fence(row, attempt=attempt, lease_id=lease_id, state=state, allowed=ALLOWED, now=now)
        assert verdict == (Stale(faults[0]) if faults else Held(ROW)), (attempt, lease_id, state, now)


def test_an_expired_worker_cannot_report_even_if_nobody_took_over():
    verdict = fence(ROW, attempt=2, lease_id="lease-2", state="IN_PROGRESS", allowed=ALLOWED, now=EXPIRES)
    assert verdict == Stale(StaleReason.EXPIRED)


@given(
    row=st.builds(Lease, st.just(2), st.just("lease-2"), st.just("a"), instants),
    now=instants,
    length=instants,
)
def test_renewal_never_revives_and_never_shortens(row, now, length):
    verdict = renew(
        row, attempt=2, lease_id="lease-2", state="IN_PROGRESS", allowed=ALLOWED, now=now, lease_ms=length
    )
    if now >= row.expires_at:
        assert verdict == Stale(StaleReason.EXPIRED)
    else:
        assert isinstance(verdict, Held)
        assert verdict.lease.expires_at == max(row.expires_at, now + length)
        assert (verdict.lease.attempt, verdict.lease.lease_id, verdict.lease.owner) == (2, "lease-2", "a")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"row": None}, StaleReason.NOT_LEASED),
        ({"attempt": 1}, StaleReason.OTHER_ATTEMPT),
        ({"lease_id": "lease-1"}, StaleReason.OTHER_LEASE),
        ({"state": "COMMITTED"}, StaleReason.WRONG_STATE),
        ({"now": EXPIRES}, StaleReason.EXPIRED),
    ],
)
def test_a_renewal_passes_the_same_fence_as_every_report(changes, reason):
    good = {"row": ROW, "attempt": 2, "lease_id": "lease-2", "state": "LEASED", "now": 0}
    assert isinstance(renew(**good, allowed=ALLOWED, lease_ms=10), Held)
    assert renew(**good | changes, allowed=ALLOWED, lease_ms=10) == Stale(reason)


def test_the_timeouts_are_those_of_the_specification():
    assert rules.ACK_TIMEOUT_MS == 30_000
    assert rules.WORK_LEASE_MS == 15 * 60_000


def test_the_publish_lease_covers_every_wait_of_the_publish_budget():
    assert rules.PUBLISH_LEASE_MS > 30_000 + 120_000 + 600_000


def test_two_heartbeats_may_be_lost_before_the_lease_is():
    assert heartbeat_ms(duration_ms(rules.WORKER_LEASE)) == 10_000


@given(st.integers(min_value=1, max_value=10**9))
def test_heartbeats_are_sooner_than_the_lease_ends(lease_ms):
    assert 1 <= heartbeat_ms(lease_ms) <= lease_ms
    if lease_ms >= 3:
        assert 3 * heartbeat_ms(lease_ms) <= lease_ms
