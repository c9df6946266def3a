"""Reclaiming: whoever finds a lease that ran out gives its job to others, or ends it if the budget is spent.

The sweep reads, decides with the rules, and writes under a guard that the lease is still expired and still
that one, so any number of sweepers may work at once and a sweep that comes too late changes nothing.
"""

from __future__ import annotations

import msgspec

from tallystick.clock import Clock
from tallystick.core.decisions import Reclaim, decide_reclaim
from tallystick.core.derive import AbortReason
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.engine.committer import Committer
from tallystick.engine.failure import Failure
from tallystick.errors import StaleLease
from tallystick.store.api import Bundle, CancelJob, EndAttempt, EndJob, ExpiredAttempt, Fact, Store

SPENT = "ATTEMPTS_SPENT"


def sweep(store: Store, committer: Committer, clock: Clock) -> int:
    """Reclaim what has expired and return how many attempts were ended."""
    found = store.expired(SWEEP_ROWS_MAX)
    if not found:
        return 0
    outcomes = committer.call_all([reclaim(expired, clock.wall_ms()) for expired in found])
    for outcome in outcomes:
        # Another sweeper was faster, or the holder finished in time: both are as good.
        if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
            raise outcome
    return sum(not isinstance(outcome, BaseException) for outcome in outcomes)


def end_overdue(store: Store, committer: Committer, clock: Clock) -> int:
    """End what was asked to end and did not within its grace; return how many jobs that were."""
    now = clock.wall_ms()
    overdue = [job_id for job_id, grace_ends in store.cancelling(SWEEP_ROWS_MAX) if grace_ends <= now]
    return _cancel_all(committer, [CancelJob(job_id, now, 0, force=True) for job_id in overdue])


def cancel_orphans(store: Store, committer: Committer, clock: Clock) -> int:
    """Cancel children whose parent has ended without them; return how many were asked to end."""
    now = clock.wall_ms()
    orphans = store.orphans(SWEEP_ROWS_MAX)
    return _cancel_all(committer, [CancelJob(job_id, now, CANCEL_GRACE_MS) for job_id in orphans])


def _cancel_all(committer: Committer, requests: list[CancelJob]) -> int:
    for outcome in committer.call_all([(request,) for request in requests]):
        if isinstance(outcome, BaseException):
            raise outcome
    return len(requests)


def reclaim(expired: ExpiredAttempt, now: int) -> Bundle:
    """Return the bundle that ends an expired attempt: its job is due again, or has failed for good."""
    budget = msgspec.json.decode(expired.options)["attempts_max"]
    verdict = decide_reclaim(
        status=expired.status,
        expired=True,
        effect=False,
        cancelling=expired.cancelling,
        charged=expired.charged_since_progress + 1,
        budget=budget,
    )
    attempt = expired.fence.attempt
    payload = {
        "attempt": f"{expired.status}>ABORTED",
        "reason": AbortReason.EXPIRED.value,
        "verdict": verdict.name,
    }
    if verdict is Reclaim.FAIL:
        payload["job"] = "IN_PROGRESS>FAILED_FINAL"
    if verdict is Reclaim.SETTLE:
        payload["job"] = "IN_PROGRESS>CANCELLING>CANCELLED"
    reclaimed = Fact(expired.chain, "reclaim", now, attempt, msgspec.json.encode(payload).decode())
    if verdict is Reclaim.RETRY:
        return (
            EndAttempt(
                expired.fence,
                AbortReason.EXPIRED,
                True,
                expired.created_at,
                None,
                None,
                reclaimed,
                expired=True,
            ),
        )
    if verdict is Reclaim.SETTLE:
        return (_ended(expired, JobState.CANCELLED, AbortReason.CANCELLED, reclaimed, None),)
    failure = Failure(
        type="AttemptsSpent",
        message=f"{budget} attempts in a row ended without progress: the worker died or lost its lease",
        code=SPENT,
        tries=budget,
    )
    return (_ended(expired, JobState.FAILED_FINAL, AbortReason.EXPIRED, reclaimed, failure),)


def _ended(
    expired: ExpiredAttempt, state: JobState, reason: AbortReason, fact: Fact, failure: Failure | None
) -> EndJob:
    """Return the end of a job by a sweep, guarded: the lease is still this one and has run out."""
    return EndJob.of(
        expired.fence,
        state,
        fact,
        driver=expired.driver,
        waited=True,
        parent=expired.parent,
        reason=reason,
        error=failure.stored() if failure else None,
        expired=True,
    )
