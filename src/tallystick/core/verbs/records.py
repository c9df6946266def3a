"""Recording and releasing: what a holder writes while a job goes on, and how it gives the job back."""

from __future__ import annotations

from typing import Final

from tallystick.core.lifecycles import ATTEMPT, AttemptState
from tallystick.core.pictures import Now, Pictures
from tallystick.core.plans import (
    AppendFact,
    Decision,
    InsertStep,
    JobValues,
    MoveAttempt,
    MoveJob,
    Plan,
    PutValue,
)
from tallystick.core.requests import EndAttempt, RecordEvent, RecordStep, SetValue
from tallystick.core.verbs.settling import stale

RUNNING: Final = AttemptState.IN_PROGRESS
_RELEASED: Final = ATTEMPT.follow(RUNNING, "abort").target


def record_step(pictures: Pictures, request: RecordStep) -> Decision:
    """Insert the row of an inline step under the fence."""
    if pictures.held(request.fence) is None:
        return stale(request.fence)
    return Plan((InsertStep(request),))


def record_event(pictures: Pictures, request: RecordEvent) -> Decision:
    """Append a fact under the fence."""
    if pictures.held(request.fence) is None:
        return stale(request.fence)
    return Plan((AppendFact(request.fact),))


def set_value(pictures: Pictures, request: SetValue) -> Decision:
    """Show a value under the fence."""
    fence = request.fence
    if pictures.held(fence) is None:
        return stale(fence)
    return Plan((PutValue(fence.job_id, request.name, request.value, fence.attempt),))


def release(pictures: Pictures, request: EndAttempt, now: Now) -> Decision:
    """Abort an attempt and leave its job to others: due again, or held; a hold set meanwhile stays."""
    fence = request.fence
    picture = pictures.held(fence)
    if picture is None:
        return stale(fence)
    ended = MoveAttempt(*fence, RUNNING, _RELEASED, request.reason, request.charged, live=True)
    ready_at = None if request.ready_at is None else now.moment(request.ready_at, request.fact.at)
    job = picture.job
    after = job._replace(ready_at=ready_at, hold=request.hold or job.hold, rev=job.rev + 1)
    values = JobValues(hold_reason=request.hold_reason)
    return Plan((ended, MoveJob(after, job.rev, request.fact, values)), wakes=ready_at is not None)
