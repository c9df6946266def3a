"""Claiming: one search for all slots of a worker, and everything that a segment needs handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.core.chain import Chain
from tallystick.store.api import ClaimedJob, ClaimJobs, Event, Fence, Outcome, Record, Wake
from tallystick.store.grouping import merged_claims
from tallystick.store.postgres.arrays import texts
from tallystick.store.postgres.connection import Answered, Talk
from tallystick.store.postgres.floors import Floors
from tallystick.store.postgres.rounds import in_rounds
from tallystick.store.postgres.statements import sql
from tallystick.store.waits import as_wake
from tallystick.store.writing import insist

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
        )

    def _claimed(self, rows: Sequence[tuple[Any, ...]]) -> list[ClaimedJob]:
        # A job that is new has two facts now, its submission and this claim; a fork has its copies too.
        again = [(row[0], row[7]) for row in rows if row[1] > 1 or row[10] > 2]
        past = self._replay(again) if again else {}
        drivers = self._drivers(rows)
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

    def _drivers(self, rows: Sequence[tuple[Any, ...]]) -> dict[str, Wake | None]:
        """Enter the messages because of which suspended jobs were claimed; their attempts remember them."""
        suspended = [(Fence(*row[:3]), row[7]) for row in rows if not row[13]]
        if not suspended:
            return {}
        # Not an instant read before the claim: what made a job due then must be due now.
        now = self._writing.part(self._writing.connection, frozenset())
        now.forget_wall()

        def verb(fence: Fence, dimension: int) -> Callable[[Talk], Wake | None]:
            def run(talk: Talk) -> Wake | None:
                part = now.part(talk, frozenset())
                wake = _enter_driver(part, fence.job_id, dimension)
                insist(part, "set_driver", (*fence[:2], "" if wake is None else wake.guid))
                part.settle()
                return wake

            return run

        drivers = in_rounds(self._writing.connection, [verb(*one) for one in suspended])
        return {fence.job_id: driver for (fence, _), driver in zip(suspended, drivers, strict=True)}

    def _replay(self, jobs: Sequence[tuple[str, int]]) -> dict[str, _Past]:
        """Return what was recorded before, for jobs that were claimed before."""
        ask = self._writing.ask
        records: dict[str, list[Record]] = defaultdict(list)
        tries: dict[str, list[Event]] = defaultdict(list)
        for job_id, *record in ask("records", jobs).fetchall():
            records[job_id].append(Record(*record))
        for row in ask("tries", jobs).fetchall():
            tries[row[0]].append(Event(*row))
        return {
            job_id: _Past(tuple(records[job_id]), tuple(tries[job_id]), charged)
            for job_id, charged in ask("charged_since_progress", jobs).fetchall()
        }


def _enter_driver(part: Batch, job_id: str, dimension: int) -> Wake | None:
    """Count the entry of the message that drives this claim, before any work, and return it."""
    found = part.rows("driver", (job_id, part.wall))
    if not found:
        return None
    wake = as_wake(found[0])
    part.run("enter_wait", (job_id, wake.guid, dimension))
    insist(part, "enter_message", (wake.guid, job_id))
    return wake
