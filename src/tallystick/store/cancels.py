"""Cancelling and cycling: endings that are not the function's own."""

from __future__ import annotations

import msgspec

from tallystick.core.derive import AbortReason
from tallystick.core.lifecycles import JOB, JobState
from tallystick.errors import LedgerCeiling, NotFound
from tallystick.store.api import CancelJob, Cycle, EndAttempt, Fact, Fence
from tallystick.store.groups import count_child
from tallystick.store.waits import drop_open, settle_driver
from tallystick.store.writing import Writing


def cancel_job(batch: Writing, request: CancelJob) -> JobState:
    """Cancel a job as far as it can be cancelled now."""
    batch.lock(request.job_id)
    found = batch.rows("cancellable", (request.job_id,))
    if not found:
        raise NotFound(f"there is no job {request.job_id}", job_id=request.job_id)
    state, attempt, dimension, _semaphore, _acked, parent, step, runs = found[0]
    if JobState(state) in JOB.final:
        return JobState(state)
    if runs and not request.force:
        asked = (request.job_id, request.at + request.grace_ms, request.at)
        batch.changed("request_cancel", asked)
        return JobState.CANCELLING
    if runs:
        batch.changed("abort_attempt", (request.job_id, batch.wall))
    else:
        attempt += 1
        batch.changed("insert_cancelled_attempt", (request.job_id, attempt, batch.wall))
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
    path = "CANCELLING>CANCELLED" if state == JobState.CANCELLING else f"{state}>CANCELLING>CANCELLED"
    payload = msgspec.json.encode({"job": path, "forced": request.force}).decode()
    event = batch.placed(Fact(chain, "cancel", batch.wall, attempt, payload))
    drop_open(batch, request.job_id, "")
    fence = Fence(request.job_id, attempt, "cancel")
    old = attempt - 1 if made else attempt
    row = (request.job_id, old, batch.wall, event.n, event.event_hash, attempt)
    batch.many("cancel_job", [row], [fence])
    batch.many("insert_event", [event], [fence])
    if parent is not None:
        count_child(batch, request.job_id, parent, JobState.CANCELLED)


def cycle(batch: Writing, request: Cycle) -> None:
    """Turn the job: the segment ends, the next dimension is due."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    fence, job_id = request.fence, request.fence.job_id
    if not batch.changed("cycle_job", (*fence[:2], request.payload)):
        raise LedgerCeiling(f"job {job_id} has turned as often as its ledger can count", job_id=job_id)
    still_open = drop_open(batch, job_id, request.driver, signals=False)
    guid = f"again:{job_id}:{request.dimension + 1}"
    row = (guid, job_id, request.dimension + 1, "again", 1, "resume", None, None, batch.wall)
    batch.changed("insert_message", row)
    settle_driver(batch, fence, request.driver, opened=1 - still_open, finished=True)
    batch.end_attempts(
        [EndAttempt(fence, AbortReason.SUSPENDED, False, batch.wall, None, None, request.fact)]
    )
