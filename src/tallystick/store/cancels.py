"""Cancelling and cycling: endings that are not the function's own."""

from __future__ import annotations

import msgspec

from tallystick.core.decisions import Cancellation, decide_cancel, decide_end
from tallystick.core.derive import AbortReason
from tallystick.core.lifecycles import JOB, JobState
from tallystick.errors import InvariantBroken, LedgerCeiling, NotFound
from tallystick.store.api import CancelJob, Cycle, EndAttempt, EndJob, Fact, Fence
from tallystick.store.groups import count_child
from tallystick.store.waits import drop_open, settle_driver
from tallystick.store.writing import Writing, insist

# The path of a job that ends by itself after it was asked to; before that the request is no fact.
_CANCELLED = '{"job":"IN_PROGRESS>CANCELLING>CANCELLED","attempt":"IN_PROGRESS>ABORTED"}'


def cancel_job(batch: Writing, request: CancelJob) -> JobState:
    """Cancel a job as far as it can be cancelled now."""
    batch.lock(request.job_id)
    found = batch.rows("cancellable", (request.job_id,))
    if not found:
        raise NotFound(f"there is no job {request.job_id}", job_id=request.job_id)
    state, attempt, dimension, parent, step, lease, _hold = found[0]
    runs = lease is not None
    verdict = decide_cancel(final=JobState(state) in JOB.final, live=runs, forced=request.force)
    if verdict is Cancellation.NOTHING:
        return JobState(state)
    if verdict is Cancellation.ASK:
        asked = (request.job_id, attempt, batch.wall + request.grace_ms, batch.wall)
        if state != JobState.CANCELLING:
            insist(batch, "request_cancel", asked)
        return JobState.CANCELLING
    if runs:
        insist(batch, "abort_attempt", (request.job_id, attempt, lease, batch.wall))
    else:
        attempt += 1
        insist(batch, "insert_cancelled_attempt", (request.job_id, attempt, batch.wall))
    _end(batch, request, state, attempt, dimension, made=not runs, parent=(parent, step) if parent else None)
    return JobState.CANCELLED


def _end(
    batch: Writing,
    request: CancelJob,
    state: str,
    attempt: int,
    dimension: int,
    *,
    made: bool,
    parent: tuple[str, str] | None,
) -> None:
    """Close the books of a cancelled job: everything open is dropped, its parent counts it."""
    chain = batch.newest(request.job_id, dimension)
    # Only a job that runs is asked to end, and the request is no fact before the job follows it.
    before = JobState.IN_PROGRESS if state == JobState.CANCELLING else state
    path = f"{before}>CANCELLING>CANCELLED"
    ending = "LEASED>ABORTED" if made else "IN_PROGRESS>ABORTED"
    payload = msgspec.json.encode({"job": path, "attempt": ending, "forced": request.force}).decode()
    event = batch.placed(Fact(chain, "cancel", batch.wall, attempt, payload))
    old = attempt - 1 if made else attempt
    still_open = _all_open(batch, request.job_id)
    drop_open(batch, request.job_id, old, "")
    fence = Fence(request.job_id, attempt, "cancel")
    row = (request.job_id, old, batch.wall, event.n, event.event_hash, attempt, still_open)
    batch.many("cancel_job", [row], fence)
    batch.many("insert_event", [event], fence)
    if parent is not None:
        count_child(batch, request.job_id, parent, JobState.CANCELLED)


def _all_open(batch: Writing, job_id: str) -> int:
    """Return how many activities a job has open, which is what its semaphore must say."""
    ((semaphore, still_open),) = batch.rows("open_activities", (job_id,))
    if semaphore != still_open:
        raise InvariantBroken(
            f"job {job_id} has {still_open} activities open and counts {semaphore}; it is left as it is, "
            "see `tally doctor`",
            job_id=job_id,
        )
    return int(still_open)


def as_asked(batch: Writing, requests: list[EndJob]) -> list[EndJob]:
    """Return endings as cancellations where the job was asked to end, whatever its function made of it."""
    asked = {job_id for (job_id,) in batch.rows("asked_to_end", ())}
    if not asked:
        return requests
    return [_decided(request, cancelling=request.fence.job_id in asked) for request in requests]


def _decided(request: EndJob, *, cancelling: bool) -> EndJob:
    ending = decide_end(state=request.state, attempt=request.attempt_status, cancelling=cancelling)
    if ending.job == request.state:
        return request
    fact = request.fact
    return request._replace(
        state=ending.job,
        attempt_status=ending.attempt,
        reason=AbortReason.CANCELLED,
        charged=False,
        result=None,
        fact=Fact(fact.chain, "cancel", fact.at, fact.attempt, _CANCELLED),
    )


def cycle(batch: Writing, request: Cycle) -> EndJob | None:
    """Turn the job: the segment ends, the next dimension is due. A job that was asked to end ends instead."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    fence, job_id = request.fence, request.fence.job_id
    (found,) = batch.rows("cancellable", (job_id,))
    if found[0] == JobState.CANCELLING:
        return _end_instead(batch, request, parent=(found[3], found[4]) if found[3] else None)
    if not batch.changed("cycle_job", (*fence[:2], request.payload)):
        raise LedgerCeiling(f"job {job_id} has turned as often as its ledger can count", job_id=job_id)
    still_open = drop_open(batch, job_id, fence.attempt, request.driver, signals=False)
    guid = f"again:{job_id}:{request.dimension + 1}"
    row = (guid, job_id, request.dimension + 1, "again", 1, "resume", None, None, batch.wall)
    insist(batch, "insert_message", row)
    settle_driver(batch, fence, request.driver, opened=1 - still_open, finished=True)
    batch.end_attempts(
        [EndAttempt(fence, AbortReason.SUSPENDED, False, batch.wall, None, None, request.fact)]
    )
    return None


def _end_instead(batch: Writing, request: Cycle, parent: tuple[str, str] | None) -> EndJob:
    """End a job that would turn and was asked to end."""
    fact = request.fact
    end = EndJob.of(
        request.fence,
        JobState.CANCELLED,
        Fact(fact.chain, "cancel", fact.at, fact.attempt, _CANCELLED),
        driver=request.driver,
        waited=True,
        parent=parent,
        reason=AbortReason.CANCELLED,
    )
    batch.end_jobs([end])
    return end
