"""Submitting: reservation, job, first events and, where it is claimed at birth, its first attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.store.api import Existing, Outcome, SubmitJob
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch


def submit_jobs(batch: Batch, requests: list[SubmitJob]) -> list[Outcome]:
    """Insert jobs; one that meets an earlier reservation writes nothing and is answered with it."""
    outcomes: list[Outcome] = [_reserve(batch, request) for request in requests]
    fresh = [request for request, existing in zip(requests, outcomes, strict=True) if existing is None]
    jobs, attempts, events = [], [], []
    for job, facts, _reservation, lease in fresh:
        placed = [batch.placed(fact) for fact in facts]
        events += placed
        state, attempt, ready_at = ("QUEUED", 0, job.ready_at) if lease is None else ("IN_PROGRESS", 1, None)
        jobs.append((*job[:7], ready_at, *job[8:], state, attempt, placed[-1].n, placed[-1].event_hash))
        if lease is not None:
            held = (lease.lease_id, lease.owner, batch.epoch, batch.boot + lease.lease_ms, batch.wall)
            attempts.append((job.job_id, 1, *held, "start"))
    batch.cursor.executemany(sql("insert_job"), jobs)
    batch.cursor.executemany(sql("insert_attempt"), attempts)
    batch.cursor.executemany(sql("insert_event"), events)
    return outcomes


def _reserve(batch: Batch, request: SubmitJob) -> Existing | None:
    """Write the reservation first; of any number of concurrent submissions one gets past this line."""
    if request.reservation is None:
        return None
    before = batch.connection.total_changes()
    row = (*request.reservation, request.job.job_id, request.job.created_at)
    batch.cursor.execute(sql("reserve"), row)
    if batch.connection.total_changes() > before:
        return None
    (found,) = batch.cursor.execute(sql("reservation"), request.reservation[:3])
    return Existing(*found)
