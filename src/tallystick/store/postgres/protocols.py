"""Protocol jobs on PostgreSQL: the requests of a flush are looked at in one round trip, written in another.

Requests about one job are decided in rounds, each from what the round before has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, assert_never, get_args

from msgspec import json

from tallystick.core.chain import Chain
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import (
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
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand, place_in_workflow
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.errors import TallyError
from tallystick.store.api import Bundle, Existing, Outcome, StoredEvent
from tallystick.store.postgres.lists.arrays import texts
from tallystick.store.postgres.server.connection import row_moved
from tallystick.store.postgres.statements import sql
from tallystick.store.refusals import STALE_REPORTS_MAX
from tallystick.store.sql.protocol_pictures import READS, pictures_of
from tallystick.store.sql.protocols import ABSENT, fact_of
from tallystick.store.sql.reads import listed

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

Request: TypeAlias = SubmitCommand | ProtocolRequest
Answers: TypeAlias = "list[Outcome | BaseException]"


def write_alone(writing: PostgresBatch, requests: Sequence[Request]) -> Callable[[], list[Outcome]]:
    """Write requests, and return what came of them as lists of other kinds do."""
    outcomes: list[Outcome] = list(write_protocols(writing, requests))
    return lambda: outcomes


def write_those(writing: PostgresBatch, batch: Sequence[Bundle], alone: Sequence[int]) -> dict[int, Outcome]:
    """Write the requests about protocol jobs among the bundles at these places together."""
    mine = [index for index in alone if is_protocol(batch[index])]
    requests = [request for index in mine for request in batch[index]]
    return dict(zip(mine, write_protocols(writing, requests), strict=True))  # type: ignore[arg-type]  # only these


def write_protocols(writing: PostgresBatch, requests: Sequence[Request]) -> Answers:
    """Decide and write requests in their order, and return what came of each; a refused one is alone."""
    outcomes: Answers = [None] * len(requests)
    left = list(range(len(requests)))
    while left:
        jobs: set[str] = set()
        this_round = [at for at in left if not _seen(jobs, _key(requests[at]))]
        for at, outcome in zip(this_round, _round(writing, [requests[at] for at in this_round]), strict=True):
            outcomes[at] = outcome
        left = [at for at in left if at not in this_round]
    return outcomes


def is_protocol(bundle: Bundle) -> bool:
    """Tell whether a bundle is one request about a protocol job."""
    if len(bundle) != 1 or place_in_workflow(bundle[0]) is not None:
        return False
    return isinstance(bundle[0], (SubmitCommand, *get_args(ProtocolRequest)))


def _key(request: Request) -> str:
    """Return what two requests may not share in one round: the job, or the reservation of a new one."""
    if not isinstance(request, SubmitCommand):
        return request.job_id
    tenant_id, scope, value, *_content = request.reservation
    return f"{tenant_id}\0{scope}\0{value}"


def _seen(keys: set[str], key: str) -> bool:
    if key in keys:
        return True
    keys.add(key)
    return False


def _round(writing: PostgresBatch, requests: Sequence[Request]) -> Answers:
    """Look at the jobs of these requests, decide, and send what was decided."""
    born = [request for request in requests if isinstance(request, SubmitCommand)]
    jobs = sorted({request.job_id for request in requests if not isinstance(request, SubmitCommand)})
    # A reservation is made at the instant at which its job is: that must be known before it is sent.
    keys = [(*request.reservation, request.job_id, writing.wall) for request in born]
    with writing.connection.pipeline():
        now = writing.ask_wall()
        if keys:
            writing.ask("reserve", keys)
        holders = writing.ask("reservations", keys) if keys else None
        writing.connection.execute(sql("lock_pictures"), (texts(jobs), "{}"))
        reads = [writing.connection.execute(sql(name), (listed(jobs),)) for name in READS]
        ends = writing.connection.execute(sql("picture_ends"), (texts(jobs),))
    writing.take_wall(now)
    found = {place: Existing._make(who) for place, *who in holders.fetchall()} if holders else {}
    held = {request.job_id: found.get(place) for place, request in enumerate(born, start=1)}
    pictures = pictures_of(*(read.fetchall() for read in reads))
    chains = {job_id: Chain(job_id, n, head) for job_id, n, head in ends.fetchall()}
    writes, outcomes = _Lists(writing), list[Outcome | BaseException]()
    for request in requests:
        if isinstance(request, SubmitCommand):
            outcomes.append(_born(writes, request, held[request.job_id], writing.wall))
        elif request.job_id not in pictures:
            outcomes.append(ABSENT)
        else:
            try:
                plan = decide(pictures[request.job_id], request, Now(writing.wall))
            except TallyError as error:
                outcomes.append(error)
                continue
            writes.add(plan, chains[request.job_id])
            outcomes.append(plan.hearing)
            writes.reports += filter(None, [stale_report(request, plan.heard)])
    with writing.connection.pipeline():
        writes.send()
    return outcomes


def _born(writes: _Lists, request: SubmitCommand, holder: Existing | None, wall: int) -> Outcome:
    if holder is None:
        raise row_moved()  # whoever held the key was pruned before we could ask who it was
    if holder.job_id != request.job_id:
        return holder
    plan = submit(request, Now(wall))
    writes.add(plan, Chain(request.job_id))
    return plan.hearing


class _Lists:
    """The writes of a round, gathered by table: no row is there twice."""

    def __init__(self, writing: PostgresBatch) -> None:
        self._writing = writing
        self._lists: dict[str, list[object]] = {}
        self._messages: list[tuple[object, ...]] = []
        self._events: list[StoredEvent] = []
        self.reports: list[StaleReport] = []

    def add(self, plan: ProtocolPlan, chain: Chain) -> None:  # noqa: C901 (a case for each kind of write)
        """Add a plan; its fact takes its place now."""
        if not plan.writes:
            return
        fact = fact_of(plan, chain, self._writing.wall)
        event = None if fact is None else self._writing.placed(fact)
        head = (None, None) if event is None else (event.n, event.event_hash)
        if event is not None:
            self._events.append(event)
        for write in plan.writes:
            match write:
                case MoveProtocolJob(job, rev):
                    self._put("move_protocol_jobs", (job, rev, *head))
                case MoveProtocolStep(step, rev):
                    self._put("move_protocol_steps", (step, rev))
                case MoveOutbox(row, rev):
                    self._put("move_outbox", (row, rev))
                case InsertProtocolJob(job, about):
                    self._put("insert_protocol_jobs", (job, about, *head))
                case InsertProtocolStep(step):
                    self._put("insert_protocol_steps", step)
                case InsertOutbox(row):
                    self._put("insert_outbox", row)
                case InsertAnswer(message):
                    self._messages.append((None, *message))
                case _:
                    assert_never(write)

    def _put(self, name: str, row: object) -> None:
        self._lists.setdefault(name, []).append(row)

    def send(self) -> None:
        """Send everything; each statement fails unless it changes what was planned."""
        wall = str(self._writing.wall)
        for name, rows in self._lists.items():
            about = {"insert_outbox": (), "insert_protocol_jobs": (wall,), "insert_protocol_steps": (wall,)}
            self._writing.ask(name, rows, *about.get(name, (wall, str(len(rows)))))
        if self._messages:
            self._writing.connection.execute(
                sql("move"),
                ("[]", "[]", json.encode(self._messages).decode(), wall, str(len(self._messages))),
            )
        if self._events:
            self._writing.ask("insert_events", self._events, str(len(self._events)))
        if self.reports:
            self._writing.ask("insert_stale_reports", self.reports, self._writing.times.wall)
            self._writing.connection.execute(sql("trim_stale_reports"), (str(STALE_REPORTS_MAX),))
