"""Claiming: one search for all slots of a worker, and everything that a segment needs handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.core.chain import Chain
from tallystick.core.marks import STARTED
from tallystick.core.pictures import JobFacts, Now, Picture, Pictures
from tallystick.core.plans import Refusal
from tallystick.core.verbs.claiming import enter
from tallystick.core.verbs.endings import escalate
from tallystick.core.verbs.wants import wanted_to_escalate
from tallystick.errors import TallyError
from tallystick.store.api import ClaimedJob, ClaimJobs, Event, Fence, Outcome, Record, Wake
from tallystick.store.grouping import merged_claims
from tallystick.store.postgres.applying import Writes, expanded
from tallystick.store.postgres.arrays import texts
from tallystick.store.postgres.connection import Answered
from tallystick.store.postgres.floors import Floors
from tallystick.store.postgres.looking import Look, add_activities, add_messages
from tallystick.store.postgres.statements import sql

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import Batch


_SUSPECT: Final = 12


class _Past(NamedTuple):
    records: tuple[Record, ...] = ()
    tries: tuple[Event, ...] = ()
    charged: int = 0


class Claims:
    """The claims of one transaction."""

    def __init__(self, writing: Batch, floors: Floors) -> None:
        """Ask nothing yet."""
        self._writing = writing
        self._floors = floors
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

    def _search(self, request: ClaimJobs) -> Callable[[], list[tuple[Any, ...]]]:
        """Send a search and return how to read its rows; one that began late and fell short looks again."""
        floors, talk = self._floors, self._writing.connection
        floor, began = floors.floor(request), floors.began()
        # Read before the search, so that it is no later than what the search takes for now.
        now = self._ask_time() if floors.wants_time(request) else None
        cursor = talk.execute(sql("claim_jobs"), self._parameters(request, floor))

        def answer() -> list[tuple[Any, ...]]:
            rows = cursor.fetchall()
            wall = None if now is None else int(now.fetchall()[0][0])
            if not floor:
                floors.looked(request, began)
            elif len(rows) < request.limit and floors.may_look(request):
                again = floors.began()
                suspects = request.suspects and not any(row[_SUSPECT] for row in rows)
                rest = request._replace(limit=request.limit - len(rows), suspects=suspects)
                rows += talk.execute(sql("claim_jobs"), self._parameters(rest, 0)).fetchall()
                floors.looked(request, again)
            floors.learn(request, floor, rows, wall)
            return rows

        return answer

    def _ask_time(self) -> Answered:
        return self._writing.connection.execute(sql("now"), (self._writing.times.wall,))

    def _parameters(self, request: ClaimJobs, floor: int) -> tuple[object, ...]:
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
            str(floor),
            str(STARTED.activity),
            str(STARTED.guid),
        )

    def _claimed(self, rows: Sequence[tuple[Any, ...]]) -> list[ClaimedJob]:
        past, drivers = self._look(rows)
        rows = [row for row in rows if row[0] not in self._ended] if self._ended else rows
        claimed = []
        for job_id, attempt, lease_id, *about, n, head, suspect, starts, parent, step, asked, owed, _ in rows:
            before = past.get(job_id, _Past())
            fence, chain = Fence(job_id, attempt, lease_id), Chain(job_id, n, head, self._writing.era)
            wake = drivers.get(job_id)
            driver = "start" if starts else wake.guid if wake is not None else ""
            home = None if parent is None else (parent, step)
            now = (suspect, driver, home, asked, owed, wake)
            claimed.append(ClaimedJob(fence, *about, chain, *before, *now))  # type: ignore[call-arg]  # columns in order
        return claimed

    def _look(self, rows: Sequence[tuple[Any, ...]]) -> tuple[dict[str, _Past], dict[str, Wake]]:
        """Return what was recorded before, and what drives the jobs that were put away; in one round trip.

        A job that is new has two facts now, its submission and this claim; a fork has its copies too.
        """
        again = [(row[0], row[7]) for row in rows if row[1] > 1 or row[10] > 2]
        woken = [Fence(*row[:3]) for row in rows if not row[13]]
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
        pictures = Pictures({row[0]: Picture(JobFacts._make(row)) for row in jobs})
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
        records[job_id].append(Record(*record))
    for row in tried:
        tries[row[0]].append(Event(*row))
    return {job_id: _Past(tuple(records[job_id]), tuple(tries[job_id]), spent) for job_id, spent in charged}
