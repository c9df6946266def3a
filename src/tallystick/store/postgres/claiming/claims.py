"""Claiming: one search for all slots of a worker, and everything that a segment needs handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.ledger.marks import STARTED
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import START, JobFacts, Now, Picture, Pictures
from tallystick.core.plans import Refusal
from tallystick.core.tuples import make
from tallystick.core.verbs.claiming import CLAIMED_AGAIN, CLAIMED_FIRST, enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import wanted_to_escalate
from tallystick.defaults import ATTEMPTS
from tallystick.errors import TallyError
from tallystick.store.api import ClaimedJob, ClaimJobs, Fence, Opened, Outcome, Record, StoredEvent, Wake
from tallystick.store.planning import expanded, merged_claims
from tallystick.store.postgres.applying import Writes
from tallystick.store.postgres.claiming.claim_cursor import ClaimCursor
from tallystick.store.postgres.claiming.limited_claims import chosen, managed
from tallystick.store.postgres.looking import PictureLook, add_activities, add_messages
from tallystick.store.postgres.server.connection import ServerAnswer
from tallystick.store.postgres.server.wire import numbers, texts
from tallystick.store.postgres.statements import sql
from tallystick.store.sql.queueing.managed import Managed

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


_MARKS: Final = (str(STARTED.activity), str(STARTED.guid), str(ATTEMPTS))


class ClaimedRow(NamedTuple):
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
    charged: int
    suspect: bool
    # Of a job that was put away, what else decisions read of its row.
    woken: tuple[int, int, int, int | None, int, int] | None
    parent_job_id: str | None
    parent_step: str | None
    cancelling: bool
    semaphore: int
    was_ready_at: int
    idempotency_key: str | None
    tags: str | None
    claimed_at: int

    @property
    def fence(self) -> Fence:
        """Return the fence of its attempt."""
        return Fence(self.job_id, self.attempt, self.lease_id)

    def facts(self) -> JobFacts:
        """Return the row of a job that was put away, as its claim has left it; its inbox is not asked for."""
        assert self.woken is not None, "a job that begins is not entered by a message"
        root, start, acked_at, cancel_at, rev, form = self.woken
        state = JobState.CANCELLING if self.cancelling else JobState.IN_PROGRESS
        digits = (self.semaphore, root, start, acked_at)
        about = (cancel_at, None, rev, form, self.parent_job_id, self.parent_step)
        name = (self.job_id, state, self.attempt, self.dimension)
        return make(JobFacts, (*name, None, None, *digits, *about, 0, 0, None, None))


class _PastOfClaim(NamedTuple):
    records: tuple[Record, ...] = ()
    tries: tuple[StoredEvent, ...] = ()
    opened: tuple[Opened, ...] = ()


class ClaimSearch:
    """The claims of one transaction."""

    def __init__(self, writing: PostgresBatch, cursor: ClaimCursor) -> None:
        """Ask nothing yet."""
        self._writing = writing
        self._cursor = cursor
        self._ended: dict[str, TallyError] = {}

    def send(self, requests: Sequence[ClaimJobs]) -> Callable[[], list[Outcome]]:
        """Send one search for each worker and return how to read what came of them."""
        merged = merged_claims(requests)
        limited = self._cursor.limited
        asked = self._writing.connection.execute(sql("limited_names")) if limited.are_old else None
        searches = [
            None if limited.names.intersection(whole.queues) else self._search(whole)
            for whole, _indexes in merged
        ]

        def answer() -> list[Outcome]:
            shares: list[Outcome] = [None] * len(requests)
            if asked is not None:
                limited.learn(name for (name,) in asked.fetchall())
            for search, (whole, indexes) in zip(searches, merged, strict=True):
                found = [] if search is None else search()
                claimed = self._claimed(whole, found)
                if limited.names.intersection(whole.queues):
                    claimed += self._claimed_by_limits(whole, found, searched=search is not None)
                for index in indexes:
                    share = requests[index].limit
                    shares[index], claimed = claimed[:share], claimed[share:]
            return shares

        return answer

    def _search(self, request: ClaimJobs) -> Callable[[], list[ClaimedRow]]:
        """Send a search and return how to read its rows."""
        start = 0 if request.only else self._cursor.start(request)
        asked = self._writing.connection.execute(sql("claim_jobs"), self._parameters(request, start))

        def answer() -> list[ClaimedRow]:
            taken = [ClaimedRow._make(row) for row in asked.fetchall()]
            if not request.only:
                self._cursor.searched(request, start, [job.was_ready_at for job in taken])
            return taken

        return answer

    def _claimed_by_limits(
        self, request: ClaimJobs, found: Sequence[ClaimedRow], *, searched: bool
    ) -> list[ClaimedJob]:
        """Claim queue by queue, where some of the queues have limits; what was `searched` is not again."""
        queues = managed(self._writing, request.queues)
        claimed: list[ClaimedJob] = []
        left, suspects = request.limit - len(found), request.suspects
        suspects = suspects and not any(job.suspect for job in found)
        for name in request.queues:
            part = request._replace(queues=(name,), limit=left, suspects=suspects)
            if left <= 0 or (searched and name not in queues):
                continue
            taken = self._chosen(part, queues[name]) if name in queues else self._search(part)()
            left -= len(taken)
            suspects = suspects and not any(job.suspect for job in taken)
            claimed += self._claimed(part, taken)
        for queue in queues.values():
            claimed = queue.with_slots(claimed)
        fences = [job.fence for job in claimed]
        # At once: another claim of this transaction counts these slots.
        with self._writing.connection.pipeline():
            for queue in queues.values():
                queue.book(self._writing, fences, request.owner)
        return claimed

    def _chosen(self, request: ClaimJobs, queue: Managed) -> list[ClaimedRow]:
        """Claim what the limits of a queue allow."""
        jobs = chosen(self._writing, queue, request, self._cursor.walks)
        if not jobs:
            return []
        leases = [request.lease_ids() for _ in jobs]
        handlers = _searched(request)[1]
        held = (texts(leases), request.owner, str(request.lease_ms), *self._writing.times)
        about = (str(int(request.suspects)), *_MARKS, CLAIMED_FIRST, CLAIMED_AGAIN, request.hooks)
        asked = self._writing.connection.execute(sql("claim_chosen"), (texts(jobs), handlers, *held, *about))
        return [ClaimedRow._make(row) for row in asked.fetchall()]

    def due(self, request: ClaimJobs) -> list[str]:
        """Return which jobs a claim would take."""
        asked = (*_searched(request), str(request.limit), self._writing.times.wall)
        return [job_id for (job_id,) in self._writing.rows("due_jobs", asked)]

    def _parameters(self, request: ClaimJobs, start: int) -> tuple[object, ...]:
        leases = [request.lease_ids() for _ in range(request.limit)]
        return (
            *_searched(request),
            str(request.limit),
            texts(leases),
            request.owner,
            str(request.lease_ms),
            *self._writing.times,
            str(int(request.suspects)),
            str(start),
            *_MARKS,
            CLAIMED_FIRST,
            CLAIMED_AGAIN,
            request.only,
            request.hooks,
        )

    def _claimed(self, request: ClaimJobs, taken: Sequence[ClaimedRow]) -> list[ClaimedJob]:
        past, drivers = self._look(request, taken)
        return [
            self._handed_over(job, past.get(job.job_id, _PastOfClaim()), drivers.get(job.job_id))
            for job in taken
            if job.job_id not in self._ended
        ]

    def _handed_over(self, job: ClaimedRow, before: _PastOfClaim, wake: Wake | None) -> ClaimedJob:
        """Return what a worker needs of a job that it has claimed."""
        return ClaimedJob(
            job.fence,
            job.handler,
            job.version,
            job.payload,
            job.options,
            job.dimension,
            job.time_left_ms,
            job.created_at,
            Chain(job.job_id, job.n, job.event_hash, self._writing.era),
            before.records,
            before.tries,
            job.charged,
            suspect=job.suspect,
            driver=START if job.woken is None else "" if wake is None else wake.guid,
            parent=None if job.parent_step is None else (job.parent_job_id or "", job.parent_step),
            cancelling=job.cancelling,
            semaphore=job.semaphore,
            wake=wake,
            parent_job_id=job.parent_job_id,
            idempotency_key=job.idempotency_key,
            tags=job.tags,
            opened=before.opened,
        )

    def _look(
        self, request: ClaimJobs, taken: Sequence[ClaimedRow]
    ) -> tuple[dict[str, _PastOfClaim], dict[str, Wake]]:
        """Return what was recorded before, and what drives the jobs that were put away; in one round trip.

        A job that is new has two facts now, its submission and this claim; a fork has its copies too.
        """
        again = [(job.job_id, job.dimension) for job in taken if job.attempt > 1 or job.n > 2]
        woken = [job for job in taken if job.woken is not None]
        if not again:
            return {}, {}
        talk, ask = self._writing.connection, self._writing.ask
        with talk.pipeline():
            past = [ask(name, again) for name in ("records", "tries", "opened")]
            # Not an instant read before the claim: what made a job due then must be due now.
            now = talk.execute(sql("now"), (self._writing.times.wall,))
            jobs = texts([job.job_id for job in woken])
            about = (
                [
                    talk.execute(sql("picture_entered"), ("{}", jobs)),
                    talk.execute(sql("picture_open"), (jobs,)),
                    talk.execute(sql("picture_drivers"), (jobs, self._writing.times.wall)),
                ]
                if woken
                else []
            )
        wakes = self._enter(request, woken, int(now.fetchall()[0][0]), about) if woken else {}
        return _pasts(past), wakes

    def _enter(
        self, request: ClaimJobs, woken: Sequence[ClaimedRow], wall: int, about: Sequence[ServerAnswer]
    ) -> dict[str, Wake]:
        """Count the entries of the messages that drive these claims; their attempts remember them."""
        entered, activities, messages = (answer.fetchall() for answer in about)
        pictures = Pictures({job.job_id: Picture(job.facts()) for job in woken})
        add_activities(pictures, [*entered, *activities])
        add_messages(pictures, messages)
        writes, wakes = Writes(self._writing, wall), {}
        drivers: list[str] = []
        full: dict[str, TallyError] = {}
        for job_id, picture in pictures.items():
            decision = enter(picture, Now(wall))
            if isinstance(decision, Refusal):
                full[job_id] = decision.error
                drivers.append(START)
                continue
            writes.add(decision.writes)
            wake = decision.outcome
            if isinstance(wake, Wake):
                wakes[job_id] = wake
            drivers.append(wake.guid if isinstance(wake, Wake) else "")
        times = self._writing.times
        names, attempts, leases = zip(*(job.fence for job in woken), strict=True)
        fences = (texts(names), numbers(attempts), texts(leases))
        begun = numbers([job.claimed_at for job in woken])
        lease = (str(request.lease_ms), times.epoch, times.lease)
        attempted = (*fences, texts(drivers), begun, request.owner, *lease)

        def send() -> None:
            writes.send()
            self._writing.connection.execute(sql("insert_woken_attempts"), attempted)

        if full:
            with self._writing.connection.pipeline():
                send()
        else:
            self._writing.send_last(send)
        self._ended.update(full)
        for job_id, error in full.items():
            self._escalate(job_id, error)
        return wakes

    def _escalate(self, job_id: str, error: TallyError) -> None:
        """End a job whose ledger can count no further entry; it was claimed just now."""
        with self._writing.connection.pipeline():
            look = PictureLook(self._writing, [wanted_to_escalate(job_id)])
        pictures, now = look.seen()
        plan = escalate(pictures, job_id, error, now)
        writes = Writes(self._writing, now.wall)
        writes.add(expanded(pictures, plan.writes, now, last=True))
        with self._writing.connection.pipeline():
            writes.send()


def _searched(request: ClaimJobs) -> tuple[str, str]:
    """Return the queues and the handlers of a claim."""
    return texts(request.queues), texts([f"{name} {version}" for name, version in request.handlers])


def _pasts(answers: Sequence[ServerAnswer]) -> dict[str, _PastOfClaim]:
    recorded, tried, left_open = (answer.fetchall() for answer in answers)
    records: dict[str, list[Record]] = defaultdict(list)
    tries: dict[str, list[StoredEvent]] = defaultdict(list)
    for job_id, *record in recorded:
        records[job_id].append(Record._make(record))
    for fact in map(StoredEvent._make, tried):
        tries[fact.job_id].append(fact)
    opened: dict[str, list[Opened]] = defaultdict(list)
    for job_id, *row in left_open:
        opened[job_id].append(Opened._make(row))
    return {
        job_id: _PastOfClaim(tuple(records[job_id]), tuple(tries[job_id]), tuple(opened[job_id]))
        for job_id in {*records, *tries, *opened}
    }
