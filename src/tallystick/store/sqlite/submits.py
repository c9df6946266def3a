"""Submitting: reservation, job, first events and, where it is claimed at birth, its first attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.core.audit.fingerprints import birth_texts
from tallystick.core.chain import GENESIS, event_hash
from tallystick.core.ledger.marks import OPENED, STARTED
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import START
from tallystick.store.api import Existing, NewJob, Outcome, SubmitJob, SubmitJobs
from tallystick.store.sql.shapes import alike
from tallystick.store.sqlite.limited_claims import refuse_limited
from tallystick.store.sqlite.multi_row import write_rows
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch


def submit_jobs(batch: SqliteBatch, requests: list[SubmitJob]) -> list[Outcome]:
    """Insert jobs; one that meets an earlier reservation writes nothing and is answered with it."""
    outcomes: list[Outcome] = [
        None if request.reservation is None else _reserve(batch, request) for request in requests
    ]
    fresh = [request for request, existing in zip(requests, outcomes, strict=True) if existing is None]
    if begin := {request.job.queue for request in fresh if request.lease is not None}:
        refuse_limited(batch, begin)
    jobs: list[tuple[object, ...]] = []
    attempts, events = [], []
    for job, facts, _reservation, lease in fresh:
        events += [batch.placed(fact) for fact in facts]
        last = events[-1]
        ready_at, deadline_at, created_at = _instants(batch, job)
        born: tuple[object, ...] = (ready_at, deadline_at, created_at, JobState.QUEUED, 0, OPENED, 0)
        if lease is not None:
            begun = (JobState.IN_PROGRESS, 1, STARTED.activity, STARTED.guid)
            born = (None, deadline_at, created_at, *begun)
            held = (lease.lease_id, lease.owner, batch.epoch, batch.boot + lease.lease_ms, batch.wall)
            attempts.append((job.job_id, 1, *held, START))
        jobs.append((job.job_id, job.payload, *alike(job), *born, last.n, last.event_hash))
    write_rows(batch.cursor, "insert_jobs", jobs)
    write_rows(batch.cursor, "insert_attempt", attempts)
    write_rows(batch.cursor, "insert_event", events)
    return outcomes


def submit_alike(batch: SqliteBatch, request: SubmitJobs) -> None:
    """Insert jobs that differ in their ids and payloads alone.

    No process holds the ends of their chains, so no place has to be given back if this is undone.
    """
    job, ((_chain, kind, at, attempt, _word),), _reservation, _lease = request.like
    shared = (*alike(job), *_instants(batch, job), JobState.QUEUED, 0, OPENED, 0, 1)
    jobs, events = [], []
    words = birth_texts(job, request.payloads)
    for job_id, payload, word in zip(request.job_ids, request.payloads, words, strict=True):
        head = event_hash(GENESIS, job_id, 1, kind, at, attempt, word)
        jobs.append((job_id, payload, *shared, head))
        events.append((job_id, 1, kind, at, attempt, word, GENESIS, head))
    write_rows(batch.cursor, "insert_jobs", jobs)
    write_rows(batch.cursor, "insert_event", events)


def _instants(batch: SqliteBatch, job: NewJob) -> tuple[int, int | None, int]:
    """Return when a job is due, when its time is over and when it was made, all by the clock of the file."""
    moved = batch.wall - job.created_at
    return job.ready_at + moved, None if job.deadline_at is None else job.deadline_at + moved, batch.wall


def _reserve(batch: SqliteBatch, request: SubmitJob) -> Existing | None:
    """Write the reservation first; of any number of concurrent submissions one gets past this line."""
    assert request.reservation is not None
    before = batch.connection.total_changes()
    row = (*request.reservation, request.job.job_id, request.job.created_at)
    batch.cursor.execute(sql("reserve"), row)
    if batch.connection.total_changes() > before:
        return None
    tenant_id, scope, value, *_content = request.reservation
    (found,) = batch.cursor.execute(sql("reservations"), (tenant_id, scope, value))
    return Existing._make(found)
