"""Recording and releasing: what a holder writes while a job goes on, and how it gives the job back."""

from __future__ import annotations

from tallystick.core.lifecycles import ATTEMPT, AttemptState
from tallystick.core.pictures import Now, Pictures
from tallystick.core.plans import AppendFact, Decision, InsertStep, JobValues, MoveAttempt, MoveJob, Plan
from tallystick.core.requests import EndAttempt, RecordEvent, RecordStep
from tallystick.core.verbs.settling import stale


def record_step(pictures: Pictures, request: RecordStep) -> Decision:
    """Insert the row of an inline step under the fence."""
    picture = pictures.get(request.fence.job_id)
    if picture is None or not picture.holds(request.fence):
        return stale(request.fence)
    return Plan((InsertStep(request),))


def record_event(pictures: Pictures, request: RecordEvent) -> Decision:
    """Append a fact under the fence."""
    picture = pictures.get(request.fence.job_id)
    if picture is None or not picture.holds(request.fence):
        return stale(request.fence)
    return Plan((AppendFact(request.fact),))


def release(pictures: Pictures, request: EndAttempt, now: Now) -> Decision:
    """Abort an attempt and leave its job to others: due again, or held; a hold set meanwhile stays."""
    fence = request.fence
    picture = pictures.get(fence.job_id)
    lease = None if picture is None else picture.lease
    if picture is None or lease is None or (lease.attempt, lease.lease_id) != fence[1:]:
        return stale(fence)
    chain = request.fact.chain
    if lease.live is request.expired or (request.expired and picture.end != (chain.n, chain.head)):
        return stale(fence)
    job = picture.job
    if job.completed_at is not None:
        return stale(fence)
    target = ATTEMPT.follow(AttemptState(lease.status), "abort").target
    ended = MoveAttempt(
        *fence, lease.status, target, request.reason, request.charged, live=not request.expired
    )
    ready_at = None if request.ready_at is None else now.moment(request.ready_at, request.fact.at)
    after = job._replace(ready_at=ready_at, hold=request.hold or job.hold, rev=job.rev + 1)
    values = JobValues(hold_reason=request.hold_reason)
    return Plan((ended, MoveJob(after, job.rev, request.fact, values)), wakes=ready_at is not None)
