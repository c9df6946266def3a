"""Protocol jobs on SQL stores: what is decided together, and what plans come to as rows of statements.

All requests of a flush are looked at together and written in lists. Two requests about one job are decided in
two rounds, the second from what the first has left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, assert_never, get_args

from tallystick.core.chain import Chain
from tallystick.core.lifecycles import OUTBOX, OutboxState
from tallystick.core.pictures import Message
from tallystick.core.remote.plans import (
    Heard,
    Hearing,
    InsertAnswer,
    InsertOutbox,
    InsertProtocolJob,
    InsertProtocolStep,
    MoveOutbox,
    MoveProtocolJob,
    MoveProtocolStep,
    ProtocolPlan,
    StaleReport,
    stale_report,
)
from tallystick.core.remote.requests import DueStep, ProtocolRequest, SubmitCommand, place_in_workflow
from tallystick.core.remote.rows import WITHDRAWN as _WITHDRAWN
from tallystick.core.remote.rows import OutboxRow, step_id_of
from tallystick.store.api import Bundle, Fact, StoredEvent
from tallystick.store.sql.reads import listed

Request: TypeAlias = SubmitCommand | ProtocolRequest

ABSENT: Final = Hearing(Heard.UNKNOWN)
"""The answer to a request about a protocol job that is not there."""

WITHDRAWN: Final = (OUTBOX.follow(OutboxState.PENDING, "withdraw").target.value, _WITHDRAWN)
"""What a directive comes to whose job has ended, and why."""


_KINDS: Final = frozenset((SubmitCommand, *get_args(ProtocolRequest)))


def is_protocol(bundle: Bundle) -> bool:
    """Tell whether a bundle is one request about a protocol job."""
    return len(bundle) == 1 and type(bundle[0]) in _KINDS and place_in_workflow(bundle[0]) is None


def in_rounds(requests: Sequence[Request]) -> Iterator[list[int]]:
    """Yield the places of requests that are decided from one look: of each job, or key of a new one, one."""
    left = list(range(len(requests)))
    while left:
        seen: set[str] = set()
        this, later = list[int](), list[int]()
        for at in left:
            key = _key(requests[at])
            (later if key in seen else this).append(at)
            seen.add(key)
        yield this
        left = later


def _key(request: Request) -> str:
    """Return what two requests may not share in one round: the job, or the reservation of a new one."""
    if not isinstance(request, SubmitCommand):
        return request.job_id
    tenant_id, scope, value, *_content = request.reservation
    return f"{tenant_id}\0{scope}\0{value}"


class ProtocolLists:
    """The writes of a round, gathered by statement: no row is there twice."""

    def __init__(self, placed: Callable[[Fact], StoredEvent], wall: int) -> None:
        """Begin with none; `placed` gives a fact its place in the chain."""
        self._placed = placed
        self._wall = wall
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.messages: list[Message] = []
        self.events: list[StoredEvent] = []
        self.reports: list[StaleReport] = []

    def add(self, plan: ProtocolPlan, chain: Chain) -> None:
        """Add a plan; its fact takes its place now."""
        head: tuple[object, object] = (None, None)
        if plan.told is not None:
            event = self._placed(
                Fact(chain, plan.told.kind, self._wall, plan.told.attempt, plan.told.payload)
            )
            self.events.append(event)
            head = (event.n, event.event_hash)
        for write in plan.writes:
            match write:
                case MoveProtocolStep():
                    self._put("move_protocol_steps", write)
                case MoveOutbox():
                    self._put("move_outbox", write)
                case InsertOutbox():
                    self._put("insert_outbox", write)
                case InsertProtocolStep():
                    self._put("insert_protocol_steps", write)
                case MoveProtocolJob(job, rev):
                    self._put("move_protocol_jobs", (job, rev, *head))
                case InsertProtocolJob(job, about):
                    self._put("insert_protocol_jobs", (job, about, *head))
                case InsertAnswer(message):
                    self.messages.append(message)
                case _:
                    assert_never(write)

    def refuse(self, request: Request, heard: Heard) -> None:
        """Keep a report for people that was refused, if it is one."""
        report = stale_report(request, heard)
        if report is not None:
            self.reports.append(report)

    def _put(self, name: str, row: tuple[Any, ...]) -> None:
        self.rows.setdefault(name, []).append(row)


class ProtocolReads(ABC):
    """What relays, the sweep and remote workers look for; a request decides again, under the lock."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def due_steps(self, limit: int) -> list[DueStep]:
        """Return remote steps that need the sweep, the longest over first."""
        rows = self.rows("due_steps", (self.now(), limit))
        return [
            DueStep(job_id, "" if dimension is None else step_id_of((dimension, name, occurrence)))
            for job_id, dimension, name, occurrence in rows
        ]

    def due_directives(self, via: str, limit: int) -> list[OutboxRow]:
        """Return directives for one endpoint that a relay may take now, the longest due first."""
        return [OutboxRow._make(row) for row in self.rows("due_directives", (via, self.now(), limit))]

    def stray_directives(self, known: Sequence[str], late_ms: int, limit: int) -> list[OutboxRow]:
        """Return directives for other endpoints than these that no relay took since they became due."""
        rows = self.rows("stray_directives", (listed(known), self.now() - late_ms, limit))
        return [OutboxRow._make(row) for row in rows]

    def asked_directives(self, services: Sequence[str], tenant_id: str | None, limit: int) -> list[OutboxRow]:
        """Return directives that a remote worker of these services may be given, the oldest first."""
        name, *whose = ("asked_directives",) if tenant_id is None else ("asked_of_tenant", tenant_id)
        rows = [
            OutboxRow._make(row) for service in services for row in self.rows(name, (*whose, service, limit))
        ]
        # The index has those of one service in order: no query reads a whole queue to find its oldest.
        return sorted(rows, key=lambda row: (row.next_try_at, row.outbox_id))[:limit]

    def given_directives(self, worker: str, limit: int) -> list[OutboxRow]:
        """Return what this remote worker was given and has not acknowledged, while there is time for that."""
        return [OutboxRow._make(row) for row in self.rows("given_directives", (worker, self.now(), limit))]
