"""Claiming: find due jobs, open an attempt for each, and hand over everything a segment needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from tallystick.core.chain import Chain
from tallystick.store.api import ClaimedJob, ClaimJobs, EndAttempt, EndJob, Event, Fact, Fence, Record
from tallystick.store.sqlite.statements import sql
from tallystick.store.waits import enter_driver

if TYPE_CHECKING:
    import apsw

    from tallystick.store.sqlite.writer import Batch

# The path in the event is the one the lifecycle declares for a claim.
_FIRST = '{"job":"QUEUED>DISPATCHING>IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'
_AGAIN = '{"job":"IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'


def claim_jobs(batch: Batch, request: ClaimJobs) -> list[ClaimedJob]:
    """Claim up to `limit` jobs, best priority and longest wait first, queue by queue."""
    known = msgspec.json.encode([f"{name} {version}" for name, version in request.handlers]).decode()
    claimed: list[ClaimedJob] = []
    attempts, jobs, events = [], [], []
    suspects_left = int(request.suspects)
    for row in _candidates(batch, request, known):
        job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, *rest = row
        n, link, acked, *parent, cancelling, semaphore, suspect = rest
        chain = Chain(job_id, n, link)
        if suspect:
            suspects_left -= 1
            if suspects_left < 0:
                continue
        # A job that is new has one fact; a fork has its copies.
        past = _replay(batch.cursor, chain, dimension) if attempt or n > 1 else _FRESH
        driver = "start" if acked is None else enter_driver(batch, job_id, dimension)
        event = batch.placed(Fact(chain, "claim", batch.wall, attempt + 1, _AGAIN if attempt else _FIRST))
        fence = Fence(job_id, attempt + 1, request.lease_ids())
        ends_at = batch.boot + request.lease_ms
        attempts.append((*fence, request.owner, batch.epoch, ends_at, batch.wall, driver))
        jobs.append((job_id, attempt, event.n, event.event_hash, batch.wall))
        events.append(event)
        about = (handler, version, payload, options, dimension, deadline_at, created_at)
        claimed.append(
            ClaimedJob(
                fence,
                *about,
                chain,
                past.records,
                past.tries,
                past.charged,
                bool(suspect),
                driver,
                _parent(parent),
                bool(cancelling),
                semaphore,
            )
        )
        if len(claimed) == request.limit:
            break
    if claimed:
        fences = [job.fence for job in claimed]
        batch.many("claim_job", jobs, fences)
        batch.many("insert_attempt", attempts, fences)
        batch.many("insert_event", events, fences)
    return claimed


def _parent(columns: list[str | None]) -> tuple[str, str] | None:
    job_id, step = columns
    return None if job_id is None or step is None else (job_id, step)


def _candidates(batch: Batch, request: ClaimJobs, known: str) -> Iterable[tuple]:  # type: ignore[type-arg]  # rows of any shape
    """Give one due job after the other for as long as the claim asks; which of them it takes, it knows."""
    if request.limit < 1:
        return
    cursor = batch.connection.cursor()
    try:
        for queue in request.queues:
            for (priority,) in list(batch.cursor.execute(sql("levels"), (queue,))):
                yield from cursor.execute(sql("claimable"), (queue, priority, batch.wall, known))
    finally:
        cursor.close(True)


class _Past(NamedTuple):
    records: tuple[Record, ...]
    tries: tuple[Event, ...]
    charged: int


_FRESH: Final = _Past((), (), 0)


def _replay(cursor: apsw.Cursor, chain: Chain, dimension: int) -> _Past:
    """Return what was recorded before, and move the chain to its true end: steps do not touch the job row."""
    rows = list(cursor.execute(sql("records"), (chain.job_id, dimension)))
    facts = [Event(*row) for row in cursor.execute(sql("tries"), (chain.job_id,))]
    heads = [*((row[4], row[8]) for row in rows), *((fact.n, fact.event_hash) for fact in facts)]
    chain.n, chain.head = max([(chain.n, chain.head), *heads], key=lambda head: head[0])
    ((charged,),) = cursor.execute(sql("charged_since_progress"), (chain.job_id,))
    tries = tuple(fact for fact in facts if fact.type in ("try", "note"))
    return _Past(tuple(Record(*row[:8]) for row in rows), tries, charged)


def newest(cursor: apsw.Cursor, job_id: str, dimension: int) -> tuple[int, Chain]:
    """Return how many charged attempts a job had since it made progress, and the end of its chain."""
    chain = Chain(job_id)
    return _replay(cursor, chain, dimension).charged, chain


def outdated(cursor: apsw.Cursor, requests: Iterable[EndAttempt | EndJob]) -> Fence | None:
    """Return the first reclaim that was decided on a chain which has moved since.

    A flush that began under a live lease may become durable after its end, and a sweep may have looked in
    between: what it read is out of date, and its event would take a place that is taken.
    """
    for request in requests:
        if request.expired:
            ((n,),) = cursor.execute(sql("chain_end"), (request.fence.job_id,))
            if n != request.fact.chain.n:
                return request.fence
    return None
