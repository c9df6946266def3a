"""Claiming: find due jobs, open an attempt for each, and hand over everything a segment needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from tallystick.core.chain import Chain
from tallystick.core.marks import STARTED
from tallystick.core.pictures import Now
from tallystick.core.plans import Refusal
from tallystick.core.tuples import make
from tallystick.core.verbs.claiming import enter
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
_FIRST = '{"job":"QUEUED>DISPATCHING>IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'
_AGAIN = '{"job":"IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'


def claim_jobs(batch: Batch, request: ClaimJobs) -> list[ClaimedJob]:
    """Claim up to `limit` jobs, best priority and longest wait first, queue by queue."""
    rows = _candidates(batch, request)
    if not rows:
        return []
    # A job that is new has one fact; a fork has its copies.
    past = _pasts(batch.cursor, {row[0]: row[6] for row in rows if row[1] or row[9] > 1})
    wakes, ended = _enter_drivers(batch, [row[0] for row in rows if row[11] is not None])
    rows = [row for row in rows if row[0] not in ended] if ended else rows
    if not rows:
        return []
    wall, ends_at = batch.wall, batch.boot + request.lease_ms
    claimed: list[ClaimedJob] = []
    attempts, jobs, events = [], [], []
    for row in rows:
        job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at = row[:9]
        n, head, acked, parent, step, cancelling, semaphore, suspect = row[9:]
        before = past.get(job_id, _FRESH)
        records, tries, charged, recorded_end = before
        end = (n, head) if before is _FRESH else max((n, head), recorded_end)
        chain = Chain(job_id, *end)
        wake = wakes.get(job_id)
        driver = "start" if acked is None else "" if wake is None else wake.guid
        event = batch.placed(make(Fact, (chain, "claim", wall, attempt + 1, _AGAIN if attempt else _FIRST)))
        fence = make(Fence, (job_id, attempt + 1, request.lease_ids()))
        attempts.append((*fence, request.owner, batch.epoch, ends_at, wall, driver))
        jobs.append((job_id, attempt, event.n, event.event_hash, wall, STARTED.activity, STARTED.guid))
        events.append(event)
        left = None if deadline_at is None else deadline_at - wall
        about = (fence, handler, version, payload, options, dimension, left, created_at, chain)
        home = None if parent is None else (parent, step)
        now = (records, tries, charged, suspect == 1, driver, home, cancelling == 1, semaphore, wake)
        claimed.append(make(ClaimedJob, about + now))
    for statement, written in (("claim_job", jobs), ("insert_attempt", attempts), ("insert_event", events)):
        batch.many(statement, written, claimed[0].fence)
    return claimed


def _candidates(batch: Batch, request: ClaimJobs) -> list[tuple]:  # type: ignore[type-arg]  # rows of any shape
    """Return the due jobs that this claim takes, with at most one suspect, or none if it may have none."""
    known = msgspec.json.encode([f"{name} {version}" for name, version in request.handlers]).decode()
    found: list[tuple] = []  # type: ignore[type-arg]  # rows of any shape
    suspects_left = int(request.suspects)
    for row in _due(batch, request, known) if request.limit > 0 else ():
        if row[-1]:
            suspects_left -= 1
            if suspects_left < 0:
                continue
        found.append(row)
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
                    yield from cursor.execute(sql("claimable"), (queue, priority, batch.wall, known))
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
    listed = (_listed(jobs),)
    records: dict[str, list[tuple]] = {job_id: [] for job_id in jobs}  # type: ignore[type-arg]  # rows of any shape
    facts: dict[str, list[Event]] = {job_id: [] for job_id in jobs}
    for job_id, *row in cursor.execute(sql("records_of_many"), listed):
        records[job_id].append(row)
    for row in cursor.execute(sql("tries_of_many"), listed):
        facts[row[0]].append(Event(*row))
    charged = dict(list(cursor.execute(sql("charged_of_many"), listed)))
    return {
        job_id: _past(sorted(records[job_id], key=_place), sorted(facts[job_id]), charged.get(job_id, 0))
        for job_id in jobs
    }


def _past(rows: list[tuple], facts: list[Event], charged: int) -> _Past:  # type: ignore[type-arg]  # rows of any shape
    ends = [*((row[4], row[8]) for row in rows[-1:]), *((fact.n, fact.event_hash) for fact in facts[-1:])]
    tries = tuple(fact for fact in facts if fact.type in ("try", "note"))
    return _Past(tuple(Record(*row[:8]) for row in rows), tries, charged, max(ends, default=(0, b"")))


def _place(row: tuple) -> int:  # type: ignore[type-arg]  # a row of any shape
    n: int = row[4]
    return n


def _listed(jobs: dict[str, int]) -> str:
    return msgspec.json.encode(jobs).decode()
