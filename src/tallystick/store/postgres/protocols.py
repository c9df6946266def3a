"""Protocol jobs on PostgreSQL: a flush looks at its requests in one round trip and writes in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import json

from tallystick.core.chain import Chain
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import ProtocolPlan
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.errors import TallyError
from tallystick.store.api import Bundle, Existing, Outcome
from tallystick.store.postgres.server.connection import row_moved
from tallystick.store.postgres.server.wire import texts
from tallystick.store.postgres.statements import sql
from tallystick.store.refusals import STALE_REPORTS_MAX
from tallystick.store.sql.protocol_pictures import READS, pictures_of
from tallystick.store.sql.protocols import ABSENT, ProtocolLists, Request, in_rounds, is_protocol
from tallystick.store.sql.reads import listed

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

Answers: TypeAlias = "list[Outcome | BaseException]"
# Statements whose rows are one named row each, and nothing beside it.
_WHOLE: Final = frozenset({"insert_outbox", "insert_protocol_steps"})


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
    for places in in_rounds(requests):
        for at, outcome in zip(places, _round(writing, [requests[at] for at in places]), strict=True):
            outcomes[at] = outcome
    return outcomes


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
    found = {place: Existing._make(holder) for place, *holder in holders.fetchall()} if holders else {}
    held = {request.job_id: found.get(place) for place, request in enumerate(born, start=1)}
    pictures = pictures_of(*(read.fetchall() for read in reads))
    chains = {job_id: Chain(job_id, n, head) for job_id, n, head in ends.fetchall()}
    writes, outcomes = ProtocolLists(writing.placed, writing.wall), list[Outcome | BaseException]()
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
            writes.refuse(request, plan.heard)
    with writing.connection.pipeline():
        _send(writing, writes)
    return outcomes


def write_plan(writing: PostgresBatch, plan: ProtocolPlan, chain: Chain) -> None:
    """Write one plan by itself."""
    lists = ProtocolLists(writing.placed, writing.wall)
    lists.add(plan, chain)
    _send(writing, lists)


def _born(writes: ProtocolLists, request: SubmitCommand, holder: Existing | None, wall: int) -> Outcome:
    if holder is None:
        raise row_moved()  # the job that held the key was pruned before it was read
    if holder.job_id != request.job_id:
        return holder
    plan = submit(request, Now(wall))
    writes.add(plan, Chain(request.job_id))
    return plan.hearing


def _send(writing: PostgresBatch, lists: ProtocolLists) -> None:
    """Send everything; each statement fails unless it changes what was planned."""
    wall = str(writing.wall)
    for name, rows in lists.rows.items():
        if name in _WHOLE:
            rows = [row for (row,) in rows]  # noqa: PLW2901 (a list of these is not nested)
        about = {"insert_outbox": (), "insert_protocol_jobs": (wall,), "insert_protocol_steps": (wall,)}
        writing.ask(name, rows, *about.get(name, (wall, str(len(rows)))))
    if lists.messages:
        messages = json.encode([(None, *message) for message in lists.messages]).decode()
        writing.connection.execute(sql("move"), ("[]", "[]", messages, wall, str(len(lists.messages))))
    if lists.events:
        writing.ask("insert_events", lists.events, str(len(lists.events)))
    if lists.reports:
        writing.ask("insert_stale_reports", lists.reports, writing.times.wall)
        writing.connection.execute(sql("trim_stale_reports"), (str(STALE_REPORTS_MAX),))
