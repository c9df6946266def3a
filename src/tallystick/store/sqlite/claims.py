"""Claiming: find due jobs, open an attempt for each, and hand over everything a segment needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from tallystick.core.chain import Chain
from tallystick.core.ledger.marks import STARTED
from tallystick.core.limits import CLAIM_BATCH_JOBS_MAX
from tallystick.core.pictures import START, Now
from tallystick.core.plans import Refusal, Write
from tallystick.core.tuples import make
from tallystick.core.verbs.claiming import CLAIMED_AGAIN, CLAIMED_FIRST, claim_text, enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import wanted_to_escalate
from tallystick.defaults import ATTEMPTS
from tallystick.errors import TallyError
from tallystick.store.api import (
    ClaimedJob,
    ClaimJobs,
    Fact,
    Fence,
    Opened,
    Record,
    StoredEvent,
    Wake,
)
from tallystick.store.planning import expanded
from tallystick.store.sql.queueing.managed import Managed
from tallystick.store.sqlite.applying import apply
from tallystick.store.sqlite.limited_claims import chosen, managed
from tallystick.store.sqlite.looking import look, look_at_drivers
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    import apsw

    from tallystick.store.sqlite.writer import SqliteBatch

_STARTED: Final = (STARTED.activity, STARTED.guid)


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
    idempotency_key: str | None
    tags: str | None
    suspect: int | None


def claim_jobs(batch: SqliteBatch, request: ClaimJobs) -> list[ClaimedJob]:
    """Claim up to `limit` jobs, best priority and longest wait first, queue by queue."""
    limited = managed(batch, request.queues)
    claimed = _claimed(batch, request, _candidates(batch, request, limited))
    for queue in limited.values():
        queue.book(batch, [job.fence for job in claimed], request.owner)
        claimed = queue.with_slots(claimed)
    return claimed


def _claimed(batch: SqliteBatch, request: ClaimJobs, due: list[_Due]) -> list[ClaimedJob]:
    """Claim these jobs, but for those whose ledgers can count no further entry."""
    if not due:
        return []
    # A job that is new has one fact; a fork has its copies.
    past = _pasts(batch.cursor, {job.job_id: job.dimension for job in due if job.attempt or job.head_n > 1})
    wakes, ended = _enter_drivers(batch, [job.job_id for job in due if job.start_acked_at is not None])
    due = [job for job in due if job.job_id not in ended] if ended else due
    if not due:
        return []
    return _open_attempts(batch, request, due, past, wakes)


def _open_attempts(
    batch: SqliteBatch, request: ClaimJobs, due: list[_Due], past: dict[str, _Past], wakes: dict[str, Wake]
) -> list[ClaimedJob]:
    """Open an attempt for each job and return what a worker needs of it."""
    wall, held = batch.wall, (request.owner, batch.epoch, batch.boot + request.lease_ms, batch.wall)
    claimed: list[ClaimedJob] = []
    attempts, jobs, events = [], [], []
    # Taken apart at once: of a named row each field by itself costs as much as a small call.
    for (
        job_id,
        attempt,
        handler,
        version,
        payload,
        options,
        dimension,
        deadline_at,
        created_at,
        head_n,
        head_hash,
        acked_at,
        parent,
        step,
        cancelling,
        semaphore,
        key,
        tags,
        suspect,
    ) in due:
        records, tries, charged, before, opened = past.get(job_id, _FRESH)
        chain, wake = Chain(job_id, *max((head_n, head_hash), before)), wakes.get(job_id)
        driver = START if acked_at is None else "" if wake is None else wake.guid
        fence = make(Fence, (job_id, attempt + 1, request.lease_ids()))
        word = claim_text(CLAIMED_AGAIN if attempt else CLAIMED_FIRST, fence.lease_id, request.owner)
        event = batch.placed(make(Fact, (chain, "claim", wall, attempt + 1, word)))
        attempts.append((*fence, *held, driver))
        jobs.append((job_id, attempt, event.n, event.event_hash, wall, *_STARTED, request.hooks))
        events.append(event)
        left = None if deadline_at is None else deadline_at - wall
        about = (fence, handler, version, payload, options, dimension, left, created_at, chain)
        home = None if step is None else (parent, step)
        now = (records, tries, charged, suspect == 1, driver, home, cancelling == 1, semaphore, wake)
        claimed.append(make(ClaimedJob, (*about, *now, parent, key, tags, opened, None)))
    for statement, written in (("claim_jobs", jobs), ("insert_attempt", attempts), ("insert_event", events)):
        batch.many(statement, written, claimed[0].fence)
    return claimed


def due_jobs(batch: SqliteBatch, request: ClaimJobs) -> list[str]:
    """Return which jobs a claim would take."""
    return [job.job_id for job in _candidates(batch, request, managed(batch, request.queues))]


def _candidates(batch: SqliteBatch, request: ClaimJobs, limited: Mapping[str, Managed]) -> list[_Due]:
    """Return the due jobs that this claim takes, with at most one suspect, or none if it may have none."""
    known = msgspec.json.encode([f"{name} {version}" for name, version in request.handlers]).decode()
    found: list[_Due] = []
    suspects_left = int(request.suspects)
    due = (
        _due_of_some(batch, request, known, limited, found) if limited else _due(batch, request.queues, known)
    )
    for row in due if request.limit > 0 else ():
        job = make(_Due, row)
        if request.only not in ("", job.job_id):
            continue
        if job.suspect:
            suspects_left -= 1
            if suspects_left < 0:
                continue
        found.append(job)
        if len(found) == request.limit:
            break
    return found


def _due_of_some(
    batch: SqliteBatch, request: ClaimJobs, known: str, limited: Mapping[str, Managed], found: list[_Due]
) -> Iterable[tuple]:  # type: ignore[type-arg]  # rows of any shape
    """Give one due job after the other, queue by queue; of those with limits, what these allow."""
    for queue in request.queues:
        if queue not in limited:
            yield from _due(batch, (queue,), known)
            continue
        wanted = CLAIM_BATCH_JOBS_MAX if request.only else request.limit - len(found)
        picked = chosen(batch, limited[queue], request, known, wanted)
        rows = batch.rows("claimable_chosen", (msgspec.json.encode(picked).decode(), ATTEMPTS))
        yield from sorted(rows, key=lambda row: picked.index(row[0]))


def _due(batch: SqliteBatch, queues: Sequence[str], known: str) -> Iterable[tuple]:  # type: ignore[type-arg]  # rows of any shape
    """Give one due job after the other for as long as the claim asks; which of them it takes, it knows."""
    cursor = batch.connection.cursor()
    try:
        for queue in queues:
            priority: int | None = -1
            while priority is not None:
                ((priority,),) = batch.cursor.execute(sql("next_level"), (queue, priority))
                if priority is not None:
                    asked = (queue, priority, batch.wall, known, ATTEMPTS)
                    yield from cursor.execute(sql("claimable"), asked)
    finally:
        cursor.close(True)


def _enter_drivers(batch: SqliteBatch, jobs: list[str]) -> tuple[dict[str, Wake], set[str]]:
    """Count the entries of the messages that drive these jobs, before any work, and return them.

    A job whose ledger can count no further entry ends here, and is not claimed.
    """
    if not jobs:
        return {}, set()
    pictures, now = look_at_drivers(batch, jobs), Now(batch.wall)
    wakes: dict[str, Wake] = {}
    writes: list[Write] = []
    full: dict[str, TallyError] = {}
    for job_id in jobs:
        decision = enter(pictures[job_id], now)
        if isinstance(decision, Refusal):
            full[job_id] = decision.error
            continue
        writes += decision.writes
        if isinstance(decision.outcome, Wake):
            wakes[job_id] = decision.outcome
    apply(batch, writes)
    for job_id, error in full.items():
        seen = look(batch, [wanted_to_escalate(job_id)])
        apply(batch, expanded(seen, escalate(seen, job_id, error, now).writes, now, last=True))
    return wakes, set(full)


class _Past(NamedTuple):
    records: tuple[Record, ...]
    tries: tuple[StoredEvent, ...]
    charged: int
    end: tuple[int, bytes] = (0, b"")
    opened: tuple[Opened, ...] = ()


_FRESH: Final = _Past((), (), 0)


def _pasts(cursor: apsw.Cursor, jobs: dict[str, int]) -> dict[str, _Past]:
    """Return what was recorded before, and the true ends of the chains: steps do not touch the job row."""
    if not jobs:
        return {}
    listed = (msgspec.json.encode(jobs).decode(),)
    records: dict[str, list[Record]] = {job_id: [] for job_id in jobs}
    facts: dict[str, list[StoredEvent]] = {job_id: [] for job_id in jobs}
    ends: dict[str, tuple[int, bytes]] = dict.fromkeys(jobs, (0, b""))
    for job_id, event_hash, *row in cursor.execute(sql("records"), listed):
        record = Record._make(row)
        records[job_id].append(record)
        ends[job_id] = max(ends[job_id], (record.n, event_hash))
    for row in cursor.execute(sql("tries"), listed):
        fact = StoredEvent._make(row)
        facts[fact.job_id].append(fact)
        ends[fact.job_id] = max(ends[fact.job_id], (fact.n, fact.event_hash))
    charged = dict(list(cursor.execute(sql("charged"), listed)))
    opened: dict[str, list[Opened]] = {}
    for job_id, *row in cursor.execute(sql("opened"), listed):
        opened.setdefault(job_id, []).append(Opened._make(row))
    return {
        job_id: _Past(
            tuple(sorted(records[job_id], key=attrgetter("n"))),
            tuple(sorted(fact for fact in facts[job_id] if fact.type in ("try", "note"))),
            charged.get(job_id, 0),
            ends[job_id],
            tuple(opened.get(job_id, ())),
        )
        for job_id in jobs
    }
