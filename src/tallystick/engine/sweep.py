"""Reclaiming: whoever finds a lease that ran out gives its job to others, or ends it if the budget is spent.

The sweep reads, decides with the rules, and writes under a guard that the lease is still expired and still
that one, so any number of sweepers may work at once and a sweep that comes too late changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from tallystick.clock import Clock
from tallystick.core.decisions import Reclaim, decide_reclaim
from tallystick.core.derive import AbortReason
from tallystick.core.holds import Hold
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import ATTEMPTS_DEFAULT, SWEEP_ROWS_MAX
from tallystick.engine.committer import Committer
from tallystick.engine.failure import Failure
from tallystick.engine.submission import attempts_allowed
from tallystick.errors import StaleLease, StoreError
from tallystick.store.api import Bundle, CancelJob, EndAttempt, EndJob, ExpiredAttempt, Fact, Fence, Store

_log = logging.getLogger("tallystick.engine")

SPENT: Final = "ATTEMPTS_SPENT"

_UNREADABLE: Final = (
    "a worker was lost over this job, and its row does not say how many attempts it may have: the column "
    f'"options" cannot be read. Put {{"attempts_max":{ATTEMPTS_DEFAULT}}} there and resume the job, or '
    "cancel it"
)


def sweep(store: Store, committer: Committer, clock: Clock, excused: Collection[Fence] = ()) -> int:
    """Reclaim what has expired and return how many attempts were ended.

    Those of the `excused` are not charged: their worker lives, and the store did not let it write.
    """
    found = store.expired(SWEEP_ROWS_MAX)
    bundles = [reclaim(expired, clock.wall_ms(), excused=expired.fence in excused) for expired in found]
    return _written(committer, bundles, [expired.fence.job_id for expired in found])


def end_overdue(store: Store, committer: Committer) -> int:
    """End what was asked to end and did not within its grace; return how many jobs that were."""
    overdue = store.overdue(SWEEP_ROWS_MAX)
    return _written(committer, [(CancelJob(job_id, 0, force=True),) for job_id in overdue], overdue)


def cancel_orphans(store: Store, committer: Committer) -> int:
    """Cancel children whose parent has ended without them; return how many were asked to end."""
    orphans = store.orphans(SWEEP_ROWS_MAX)
    return _written(committer, [(CancelJob(job_id, CANCEL_GRACE_MS),) for job_id in orphans], orphans)


def _written(committer: Committer, bundles: Sequence[Bundle], job_ids: Sequence[str]) -> int:
    """Write a bundle for each job and return how many were taken; one that is refused stops no other."""
    taken = 0
    for job_id, outcome in zip(job_ids, committer.call_all(bundles), strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if not isinstance(outcome, BaseException):
            taken += 1
        # Another sweeper was faster, or the holder finished in time: both are as good.
        elif not isinstance(outcome, StaleLease):
            _log.warning("job %s: refused in a sweep, %s", job_id, outcome, extra={"action": "sweep.refused"})
    return taken


def reclaim(expired: ExpiredAttempt, now: int, *, excused: bool = False) -> Bundle:
    """Return the bundle that ends an expired attempt: its job is due again, held, or has failed for good."""
    budget = attempts_allowed(expired.options)
    if budget is None:
        if not expired.cancelling:
            return (_held(expired, now),)
        budget = 1  # it ends now, whatever it was
    verdict = decide_reclaim(
        status=expired.status,
        expired=True,
        effect=False,
        cancelling=expired.cancelling,
        charged=0 if excused else expired.charged_since_progress + 1,
        budget=budget,
    )
    reason = AbortReason.RELEASED if excused else AbortReason.EXPIRED
    payload = {"attempt": f"{expired.status}>ABORTED", "reason": reason.value, "verdict": verdict.name}
    if verdict is Reclaim.FAIL:
        payload["job"] = "IN_PROGRESS>FAILED_FINAL"
    if verdict is Reclaim.SETTLE:
        payload["job"] = "IN_PROGRESS>CANCELLING>CANCELLED"
    reclaimed = _fact(expired, "reclaim", now, payload)
    if verdict is Reclaim.RETRY:
        # As early in the queue as it has waited, and due at once whatever the clocks say.
        ready_at = min(expired.created_at, now)
        return (
            EndAttempt(expired.fence, reason, not excused, ready_at, None, None, reclaimed, expired=True),
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


def _held(expired: ExpiredAttempt, now: int) -> EndAttempt:
    """Return what stops a job whose row cannot be judged, so that it keeps no other from being judged."""
    hold = Hold.MISMATCH
    fact = _fact(
        expired, "hold", now, {"attempt": f"{expired.status}>ABORTED", "hold": hold.value, "why": _UNREADABLE}
    )
    return EndAttempt(
        expired.fence, AbortReason.HELD, False, expired.created_at, hold, _UNREADABLE, fact, expired=True
    )


def _fact(expired: ExpiredAttempt, kind: str, now: int, payload: dict[str, str]) -> Fact:
    return Fact(expired.chain, kind, now, expired.fence.attempt, msgspec.json.encode(payload).decode())


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
