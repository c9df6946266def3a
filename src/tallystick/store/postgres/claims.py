"""Claiming: one search for all slots of a worker, and everything that a segment needs handed over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallystick.core.chain import Chain
from tallystick.store.api import ClaimedJob, ClaimJobs, Event, Fence, Outcome, Record
from tallystick.store.grouping import merged_claims
from tallystick.store.postgres.statements import sql

if TYPE_CHECKING:
    import psycopg

    from tallystick.store.postgres.connection import Talk
    from tallystick.store.postgres.writer import Times


class _Past(NamedTuple):
    records: tuple[Record, ...] = ()
    tries: tuple[Event, ...] = ()
    charged: int = 0


class Claims:
    """The claims of one transaction."""

    def __init__(self, ask: Callable[..., psycopg.Cursor[Any]], times: Times) -> None:
        """Ask nothing yet."""
        self._ask = ask
        self._times = times

    def send(self, connection: Talk, requests: Sequence[ClaimJobs]) -> Callable[[], list[Outcome]]:
        """Send one search for each worker and return how to read what came of them."""
        merged = merged_claims(requests)
        cursors = [connection.execute(sql("claim_jobs"), self._parameters(whole)) for whole, _ in merged]

        def answer() -> list[Outcome]:
            shares: list[Outcome] = [None] * len(requests)
            for cursor, (_whole, indexes) in zip(cursors, merged, strict=True):
                claimed = self._claimed(cursor.fetchall())
                for index in indexes:
                    share = requests[index].limit
                    shares[index], claimed = claimed[:share], claimed[share:]
            return shares

        return answer

    def _parameters(self, request: ClaimJobs) -> tuple[object, ...]:
        leases = [request.lease_ids() for _ in range(request.limit)]
        handlers = [f"{name} {version}" for name, version in request.handlers]
        return (
            list(request.queues),
            handlers,
            str(request.limit),
            leases,
            request.owner,
            str(request.lease_ms),
            *self._times,
        )

    def _claimed(self, rows: Sequence[tuple[Any, ...]]) -> list[ClaimedJob]:
        again = [(row[0], row[7]) for row in rows if row[1] > 1]
        past = self._replay(again) if again else {}
        claimed = []
        for job_id, attempt, lease_id, *about, n, head in rows:
            before = past.get(job_id, _Past())
            fence, chain = Fence(job_id, attempt, lease_id), Chain(job_id, n, head)
            claimed.append(ClaimedJob(fence, *about, chain, *before))  # type: ignore[call-arg]  # the columns are counted there
        return claimed

    def _replay(self, jobs: Sequence[tuple[str, int]]) -> dict[str, _Past]:
        """Return what was recorded before, for jobs that were claimed before."""
        records: dict[str, list[Record]] = defaultdict(list)
        tries: dict[str, list[Event]] = defaultdict(list)
        for job_id, *record in self._ask("records", jobs).fetchall():
            records[job_id].append(Record(*record))
        for row in self._ask("tries", jobs).fetchall():
            tries[row[0]].append(Event(*row))
        charged = self._ask("charged_since_progress", jobs).fetchall()
        return {
            job_id: _Past(tuple(records[job_id]), tuple(tries[job_id]), count) for job_id, count in charged
        }
