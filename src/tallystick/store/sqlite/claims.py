"""Claiming: find due jobs, open an attempt for each, and hand over everything a segment needs."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from tallystick.core.chain import Chain
from tallystick.core.limits import ATTEMPTS_DEFAULT
from tallystick.core.marks import STARTED
from tallystick.core.pictures import START, Now
from tallystick.core.plans import Refusal
from tallystick.core.tuples import make
from tallystick.core.verbs.claiming import CLAIMED_AGAIN, CLAIMED_FIRST, enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import wanted_to_escalate
from tallystick.store.api import (
    ClaimedJob,
    ClaimJobs,
    Event,
    Fact,
    Fence,
    Record,
    Wake,
)
from tallystick.store.sqlite.applying import apply
from tallystick.store.sqlite.looking import look, look_at_drivers
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    import apsw

    from tallystick.store.sqlite.writer import Batch

# The path in the event is the one the lifecycle declares for a claim.


class _Due(NamedTuple):
    """A due job, as `claimable` finds it."""

    job_id: str
    attempt: int
    handler: str
    version: str
    payload: str
    options: str
    dimension: int
    deadline_at: int | None
    created_at: int
    head_n: int
    head_hash: bytes
    start_acked_at: int | None
    parent_job_id: str | None
    parent_step: str | None
    cancelling: int
    semaphore: int
    suspect: int | None


def claim_jobs(batch: Batch, request: ClaimJobs) -> list[ClaimedJob]:
    """Claim up to `limit` jobs, best priority and longest wait first, queue by queue."""
    due = _candidates(batch, request)
    if not due:
        return []
    # A job that is new has one fact; a fork has its copies.
    past = _pasts(batch.cursor, {job.job_id: job.dimension for job in due if job.attempt or job.head_n > 1})
    wakes, ended = _enter_drivers(batch, [job.job_id for job in due if job.start_acked_at is not None])
    due = [job for job in due if job.job_id not in ended] if ended else due
    if not due:
        return []
    wall, ends_at = batch.wall, batch.boot + request.lease_ms
    claimed: list[ClaimedJob] = []
    attempts, jobs, events = [], [], []
    for job in due:
        job_id, attempt = job.job_id, job.attempt
        before = past.get(job_id, _FRESH)
        end = (job.head_n, job.head_hash)
        chain = Chain(job_id, *(end if before is _FRESH else max(end, before.end)))
        wake = wakes.get(job_id)
        driver = START if job.start_acked_at is None else "" if wake is None else wake.guid
        event = batch.placed(
            make(Fact, (chain, "claim", wall, attempt + 1, CLAIMED_AGAIN if attempt else CLAIMED_FIRST))
        )
        fence = make(Fence, (job_id, attempt + 1, request.lease_ids()))
        attempts.append((*fence, request.owner, batch.epoch, ends_at, wall, driver))
        jobs.append((job_id, attempt, event.n, event.event_hash, wall, STARTED.activity, STARTED.guid))
        events.append(event)
        claimed.append(_handed_over(job, fence, chain, before, wall, driver, wake))
    for statement, written in (("claim_jobs", jobs), ("insert_attempt", attempts), ("insert_event", events)):
        batch.many(statement, written, claimed[0].fence)
    return claimed


def _handed_over(
    job: _Due, fence: Fence, chain: Chain, before: _Past, wall: int, driver: str, wake: Wake | None
) -> ClaimedJob:
    """Return what a worker needs of a job that it has claimed."""
    return make(
        ClaimedJob,
        (
            *(fence, job.handler, job.version, job.payload, job.options, job.dimension),
            None if job.deadline_at is None else job.deadline_at - wall,
            *(job.created_at, chain, before.records, before.tries, before.charged, job.suspect == 1, driver),
            None if job.parent_job_id is None else (job.parent_job_id, job.parent_step),
            *(job.cancelling == 1, job.semaphore, wake),
        ),
    )


def _candidates(batch: Batch, request: ClaimJobs) -> list[_Due]:
    """Return the due jobs that this claim takes, with at most one suspect, or none if it may have none."""
    known = msgspec.json.encode([f"{name} {version}" for name, version in request.handlers]).decode()
    found: list[_Due] = []
    suspects_left = int(request.suspects)
    for row in _due(batch, request, known) if request.limit > 0 else ():
        job = make(_Due, row)
        if job.suspect:
            suspects_left -= 1
            if suspects_left < 0:
                continue
        found.append(job)
        if len(found) == request.limit:
            break
    return found


def _due(batch: Batch, request: ClaimJobs, known: str) -> Iterable[tuple]:  # type: ignore[type-arg]  # rows of any shape
    """Give one due job after the other for as long as the claim asks; which of them it takes, it knows."""
    cursor = batch.connection.cursor()
    try:
        for queue in request.queues:
            priority: int | None = -1
            while priority is not None:
                ((priority,),) = batch.cursor.execute(sql("next_level"), (queue, priority))
                if priority is not None:
                    asked = (queue, priority, batch.wall, known, ATTEMPTS_DEFAULT)
                    yield from cursor.execute(sql("claimable"), asked)
    finally:
        cursor.close(True)


def _enter_drivers(batch: Batch, jobs: list[str]) -> tuple[dict[str, Wake], set[str]]:
    """Count the entries of the messages that drive these jobs, before any work, and return them.

    A job whose ledger can count no further entry ends here, and is not claimed.
    """
    wakes, ended = {}, set()
    for job_id in jobs:
        now = Now(batch.wall)
        decision = enter(look_at_drivers(batch, job_id), now)
        if isinstance(decision, Refusal):
            ended.add(job_id)
            decision = escalate(look(batch, wanted_to_escalate(job_id)), job_id, decision.error, now)
        apply(batch, decision.writes)
        if isinstance(decision.outcome, Wake):
            wakes[job_id] = decision.outcome
    return wakes, ended


class _Past(NamedTuple):
    records: tuple[Record, ...]
    tries: tuple[Event, ...]
    charged: int
    end: tuple[int, bytes] = (0, b"")


_FRESH: Final = _Past((), (), 0)


def _pasts(cursor: apsw.Cursor, jobs: dict[str, int]) -> dict[str, _Past]:
    """Return what was recorded before, and the true ends of the chains: steps do not touch the job row."""
    if not jobs:
        return {}
    listed = (msgspec.json.encode(jobs).decode(),)
    records: dict[str, list[Record]] = {job_id: [] for job_id in jobs}
    facts: dict[str, list[Event]] = {job_id: [] for job_id in jobs}
    ends: dict[str, tuple[int, bytes]] = dict.fromkeys(jobs, (0, b""))
    for job_id, event_hash, *row in cursor.execute(sql("records"), listed):
        record = Record._make(row)
        records[job_id].append(record)
        ends[job_id] = max(ends[job_id], (record.n, event_hash))
    for row in cursor.execute(sql("tries"), listed):
        fact = Event._make(row)
        facts[fact.job_id].append(fact)
        ends[fact.job_id] = max(ends[fact.job_id], (fact.n, fact.event_hash))
    charged = dict(list(cursor.execute(sql("charged"), listed)))
    return {
        job_id: _Past(
            tuple(sorted(records[job_id], key=attrgetter("n"))),
            tuple(sorted(fact for fact in facts[job_id] if fact.type in ("try", "note"))),
            charged.get(job_id, 0),
            ends[job_id],
        )
        for job_id in jobs
    }
