"""Claiming: one search for all slots of a worker, and everything that a segment needs handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.limits import ATTEMPTS_DEFAULT
from tallystick.core.marks import STARTED
from tallystick.core.pictures import START, Now
from tallystick.core.plans import Refusal
from tallystick.core.verbs.claiming import CLAIMED_AGAIN, CLAIMED_FIRST, enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import wanted_to_escalate
from tallystick.errors import TallyError
from tallystick.store.api import ClaimedJob, ClaimJobs, Event, Fence, Outcome, Record, Wake
from tallystick.store.grouping import merged_claims
from tallystick.store.postgres.applying import Writes, expanded
from tallystick.store.postgres.arrays import texts
from tallystick.store.postgres.claim_cursor import ClaimCursor
from tallystick.store.postgres.connection import Answered
from tallystick.store.postgres.looking import Look, add_activities, add_messages, pictures_of
from tallystick.store.postgres.statements import sql

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import Batch


class Taken(NamedTuple):
    """A job that a search has claimed, as `claim_jobs` returns it."""

    job_id: str
    attempt: int
    lease_id: str
    handler: str
    version: str
    payload: str
    options: str
    dimension: int
    time_left_ms: int | None
    created_at: int
    n: int
    event_hash: bytes
    suspect: bool
    starts: bool
    parent_job_id: str | None
    parent_step: str
    cancelling: bool
    semaphore: int
    was_ready_at: int


class _Past(NamedTuple):
    records: tuple[Record, ...] = ()
    tries: tuple[Event, ...] = ()
    charged: int = 0


class Claims:
    """The claims of one transaction."""

    def __init__(self, writing: Batch, cursor: ClaimCursor) -> None:
        """Ask nothing yet."""
        self._writing = writing
        self._cursor = cursor
        self._ended: dict[str, TallyError] = {}

    def send(self, requests: Sequence[ClaimJobs]) -> Callable[[], list[Outcome]]:
        """Send one search for each worker and return how to read what came of them."""
        merged = merged_claims(requests)
        searches = [self._search(whole) for whole, _indexes in merged]

        def answer() -> list[Outcome]:
            shares: list[Outcome] = [None] * len(requests)
            for search, (_whole, indexes) in zip(searches, merged, strict=True):
                claimed = self._claimed(search())
                for index in indexes:
                    share = requests[index].limit
                    shares[index], claimed = claimed[:share], claimed[share:]
            return shares

        return answer

    def _search(self, request: ClaimJobs) -> Callable[[], list[Taken]]:
        """Send a search and return how to read its rows."""
        start = self._cursor.start(request)
        asked = self._writing.connection.execute(sql("claim_jobs"), self._parameters(request, start))

        def answer() -> list[Taken]:
            taken = [Taken._make(row) for row in asked.fetchall()]
            self._cursor.searched(request, start, [job.was_ready_at for job in taken])
            return taken

        return answer

    def _ask_time(self) -> Answered:
        return self._writing.connection.execute(sql("now"), (self._writing.times.wall,))

    def _parameters(self, request: ClaimJobs, start: int) -> tuple[object, ...]:
        leases = [request.lease_ids() for _ in range(request.limit)]
        handlers = [f"{name} {version}" for name, version in request.handlers]
        return (
            texts(request.queues),
            texts(handlers),
            str(request.limit),
            texts(leases),
            request.owner,
            str(request.lease_ms),
            *self._writing.times,
            str(int(request.suspects)),
            str(start),
            str(STARTED.activity),
            str(STARTED.guid),
            str(ATTEMPTS_DEFAULT),
            CLAIMED_FIRST,
            CLAIMED_AGAIN,
        )

    def _claimed(self, taken: Sequence[Taken]) -> list[ClaimedJob]:
        past, drivers = self._look(taken)
        return [
            self._handed_over(job, past.get(job.job_id, _Past()), drivers.get(job.job_id))
            for job in taken
            if job.job_id not in self._ended
        ]

    def _handed_over(self, job: Taken, before: _Past, wake: Wake | None) -> ClaimedJob:
        """Return what a worker needs of a job that it has claimed."""
        return ClaimedJob(
            Fence(job.job_id, job.attempt, job.lease_id),
            job.handler,
            job.version,
            job.payload,
            job.options,
            job.dimension,
            job.time_left_ms,
            job.created_at,
            Chain(job.job_id, job.n, job.event_hash, self._writing.era),
            *before,
            suspect=job.suspect,
            driver=START if job.starts else "" if wake is None else wake.guid,
            parent=None if job.parent_job_id is None else (job.parent_job_id, job.parent_step),
            cancelling=job.cancelling,
            semaphore=job.semaphore,
            wake=wake,
        )

    def _look(self, taken: Sequence[Taken]) -> tuple[dict[str, _Past], dict[str, Wake]]:
        """Return what was recorded before, and what drives the jobs that were put away; in one round trip.

        A job that is new has two facts now, its submission and this claim; a fork has its copies too.
        """
        again = [(job.job_id, job.dimension) for job in taken if job.attempt > 1 or job.n > 2]
        woken = [Fence(job.job_id, job.attempt, job.lease_id) for job in taken if not job.starts]
        if not again and not woken:
            return {}, {}
        talk, ask = self._writing.connection, self._writing.ask
        now: Answered | None = None
        about: list[Answered] = []
        with talk.pipeline():
            if woken:
                # Not an instant read before the claim: what made a job due then must be due now.
                now = self._ask_time()
                jobs = texts([fence.job_id for fence in woken])
                about = [
                    talk.execute(sql("picture_jobs"), (jobs, "{}")),
                    talk.execute(sql("picture_open"), (jobs,)),
                ]
                about.append(talk.execute(sql("picture_drivers"), (jobs, self._writing.times.wall)))
                about.append(talk.execute(sql("picture_entered"), ("{}", jobs)))
            past = [ask(name, again) for name in ("records", "tries", "charged")] if again else []
        wakes = {} if now is None else self._enter(woken, int(now.fetchall()[0][0]), about)
        return _pasts(past) if past else {}, wakes

    def _enter(self, woken: Sequence[Fence], wall: int, about: Sequence[Answered]) -> dict[str, Wake]:
        """Count the entries of the messages that drive these claims; their attempts remember them."""
        jobs, activities, messages, entered = (answer.fetchall() for answer in about)
        pictures = pictures_of(jobs)
        add_activities(pictures, [*entered, *activities])
        add_messages(pictures, messages)
        writes, wakes = Writes(self._writing, wall), {}
        drivers = []
        full: dict[str, TallyError] = {}
        for fence in woken:
            decision = enter(pictures[fence.job_id], Now(wall))
            if isinstance(decision, Refusal):
                full[fence.job_id] = decision.error
                continue
            writes.add(decision.writes)
            wake = decision.outcome
            if isinstance(wake, Wake):
                wakes[fence.job_id] = wake
            guid = wake.guid if isinstance(wake, Wake) else ""
            drivers.append({"job_id": fence.job_id, "attempt": fence.attempt, "guid": guid})
        with self._writing.connection.pipeline():
            writes.send()
            self._writing.ask("set_drivers", drivers, str(len(drivers)))
        self._ended.update(full)
        for job_id, error in full.items():
            self._escalate(job_id, error)
        return wakes

    def _escalate(self, job_id: str, error: TallyError) -> None:
        """End a job whose ledger can count no further entry; it was claimed just now."""
        with self._writing.connection.pipeline():
            look = Look(self._writing, [wanted_to_escalate(job_id)])
        pictures, now = look.seen()
        plan = escalate(pictures, job_id, error, now)
        writes = Writes(self._writing, now.wall)
        writes.add(expanded(pictures, plan.writes, now))
        with self._writing.connection.pipeline():
            writes.send()


def _pasts(answers: Sequence[Answered]) -> dict[str, _Past]:
    recorded, tried, charged = (answer.fetchall() for answer in answers)
    records: dict[str, list[Record]] = defaultdict(list)
    tries: dict[str, list[Event]] = defaultdict(list)
    for job_id, *record in recorded:
        records[job_id].append(Record._make(record))
    for fact in map(Event._make, tried):
        tries[fact.job_id].append(fact)
    return {job_id: _Past(tuple(records[job_id]), tuple(tries[job_id]), spent) for job_id, spent in charged}
