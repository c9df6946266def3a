"""Cancelling and cycling: endings that are not the function's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tallystick.core.decisions import Cancellation, decide_cancel, decide_end
from tallystick.core.derive import AbortReason
from tallystick.core.lifecycles import JOB, AttemptState, JobState
from tallystick.errors import LedgerCeiling, NotFound
from tallystick.store.api import CancelJob, Cycle, EndAttempt, EndJob, Fact, Fence
from tallystick.store.sqlite.claims import newest
from tallystick.store.sqlite.groups import count_child
from tallystick.store.sqlite.statements import sql
from tallystick.store.sqlite.waits import drop_open, settle_driver

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch


def cancel_job(batch: Batch, request: CancelJob) -> JobState:
    """Cancel a job as far as it can be cancelled now."""
    found = list(batch.cursor.execute(sql("cancellable"), (request.job_id,)))
    if not found:
        raise NotFound(f"there is no job {request.job_id}", job_id=request.job_id)
    state, attempt, dimension, _semaphore, _acked, parent, step, runs = found[0]
    verdict = decide_cancel(final=JobState(state) in JOB.final, live=bool(runs), forced=request.force)
    if verdict is Cancellation.NOTHING:
        return JobState(state)
    if verdict is Cancellation.ASK:
        asked = (request.job_id, request.at + request.grace_ms, request.at)
        batch.cursor.execute(sql("request_cancel"), asked)
        return JobState.CANCELLING
    if runs:
        batch.cursor.execute(sql("abort_attempt"), (request.job_id, batch.wall))
    else:
        attempt += 1
        row = (request.job_id, attempt, batch.epoch, batch.boot, batch.wall)
        batch.cursor.execute(sql("insert_cancelled_attempt"), row)
    _end(batch, request, state, attempt, dimension, made=not runs, parent=(parent, step) if parent else None)
    return JobState.CANCELLED


def _end(
    batch: Batch,
    request: CancelJob,
    state: str,
    attempt: int,
    dimension: int,
    *,
    made: bool,
    parent: tuple[str, str] | None,
) -> None:
    """Close the books of a cancelled job: everything open is dropped, its parent counts it."""
    _charged, chain = newest(batch.cursor, request.job_id, dimension)
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


def as_it_must_end(batch: Batch, request: EndJob) -> EndJob:
    """Return the ending of a job that was asked to end before its function came to its own."""
    found = list(batch.cursor.execute(sql("cancellable"), (request.fence.job_id,)))
    cancelling = bool(found) and found[0][0] == JobState.CANCELLING
    ending = decide_end(state=request.state, attempt=request.attempt_status, cancelling=cancelling)
    if ending.job == request.state:
        return request
    payload = msgspec.json.encode(
        {"job": "CANCELLING>CANCELLED", "attempt": "IN_PROGRESS>ABORTED", "instead_of": request.state}
    )
    return request._replace(
        state=ending.job,
        attempt_status=ending.attempt,
        reason=AbortReason.CANCELLED,
        charged=False,
        result=None,
        fact=request.fact._replace(type="cancel", payload=payload.decode()),
    )


def cycle(batch: Batch, request: Cycle) -> EndJob | None:
    """Turn the job: the segment ends, the next dimension is due. One that is being cancelled ends instead."""
    batch.check_fence(request.fence)
    fence, job_id = request.fence, request.fence.job_id
    ((state, *_, parent, step, _runs),) = batch.cursor.execute(sql("cancellable"), (job_id,))
    if state == JobState.CANCELLING:
        return _cancelled_turn(batch, request, (parent, step) if parent else None)
    before = batch.connection.total_changes()
    batch.cursor.execute(sql("cycle_job"), (*fence[:2], request.payload))
    if batch.connection.total_changes() == before:
        raise LedgerCeiling(f"job {job_id} has turned as often as its ledger can count", job_id=job_id)
    still_open = drop_open(batch, job_id, request.driver, turns=True)
    guid = f"again:{job_id}:{request.dimension + 1}"
    row = (guid, job_id, request.dimension + 1, "again", 1, "resume", None, None, batch.wall)
    batch.cursor.execute(sql("insert_message"), row)
    settle_driver(batch, fence, request.driver, opened=1 - still_open, finished=True)
    batch.end_attempts(
        [EndAttempt(fence, AbortReason.SUSPENDED, False, batch.wall, None, None, request.fact)]
    )
    return None


def _cancelled_turn(batch: Batch, request: Cycle, parent: tuple[str, str] | None) -> EndJob:
    payload = '{"job":"CANCELLING>CANCELLED","attempt":"IN_PROGRESS>ABORTED"}'
    ending = EndJob(
        request.fence,
        JobState.CANCELLED,
        AttemptState.ABORTED,
        AbortReason.CANCELLED,
        False,
        None,
        None,
        None,
        None,
        request.fact._replace(type="cancel", payload=payload),
        driver=request.driver,
        waited=True,
        parent=parent,
    )
    batch.end_jobs([ending])
    return ending
