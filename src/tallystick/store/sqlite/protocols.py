"""Protocol jobs on a file: look, decide, write, with the lock held that every writer needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.chain import Chain
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import ProtocolPlan
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.store.api import Existing, Outcome
from tallystick.store.refusals import STALE_REPORTS_MAX
from tallystick.store.sql.protocol_pictures import READS, pictures_of
from tallystick.store.sql.protocols import ABSENT, ProtocolLists, Request, in_rounds
from tallystick.store.sql.reads import listed
from tallystick.store.sqlite.multi_row import write_exactly, write_rows

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch

# Whatever plans they come from: a job is there before its steps, and it ends after them.
_ORDER: Final = (
    "insert_protocol_jobs",
    "insert_protocol_steps",
    "move_protocol_steps",
    "move_outbox",
    "insert_outbox",
    "move_protocol_jobs",
)
# Rows that say themselves when they were made.
_AT_ITS_BIRTH: Final = frozenset({"insert_outbox"})


def write_protocols(batch: SqliteBatch, requests: Sequence[Request]) -> list[Outcome]:
    """Decide requests in their order and write what was decided, in lists."""
    outcomes: list[Outcome] = [None] * len(requests)
    for places in in_rounds(requests):
        for at, outcome in zip(places, _round(batch, [requests[at] for at in places]), strict=True):
            outcomes[at] = outcome
    return outcomes


def _round(batch: SqliteBatch, requests: Sequence[Request]) -> list[Outcome]:
    """Look at the jobs of these requests, decide, and write what was decided."""
    asked = (listed([each.job_id for each in requests if not isinstance(each, SubmitCommand)]),)
    pictures = pictures_of(*(batch.rows(name, asked) for name in READS))
    ends = {job_id: (n, head) for job_id, n, head in batch.rows("protocol_ends", asked)}
    lists, outcomes, now = ProtocolLists(batch.placed, batch.wall), list[Outcome](), Now(batch.wall)
    for request in requests:
        if isinstance(request, SubmitCommand):
            outcomes.append(_born(batch, lists, request, now))
        elif request.job_id not in pictures:
            outcomes.append(ABSENT)
        else:
            plan = decide(pictures[request.job_id], request, now)
            if plan.writes:
                lists.add(plan, Chain(request.job_id, *ends[request.job_id]))
            lists.refuse(request, plan.heard)
            outcomes.append(plan.hearing)
    _write(batch, lists)
    return outcomes


def write_plan(batch: SqliteBatch, plan: ProtocolPlan, chain: Chain) -> None:
    """Write one plan by itself."""
    lists = ProtocolLists(batch.placed, batch.wall)
    lists.add(plan, chain)
    _write(batch, lists)


def _born(batch: SqliteBatch, lists: ProtocolLists, request: SubmitCommand, now: Now) -> Outcome:
    """Make a job of a command, unless the reservation shows that it was made before."""
    row = (*request.reservation, request.job_id, batch.wall)
    if not batch.changed("reserve", row):
        tenant_id, scope, value, *_content = request.reservation
        (found,) = batch.rows("reservations", (tenant_id, scope, value))
        return Existing._make(found)
    plan = submit(request, now)
    lists.add(plan, Chain(request.job_id))
    return plan.hearing


def _write(batch: SqliteBatch, lists: ProtocolLists) -> None:
    """Write everything; whatever differs from what was looked at is a bug: the lock was held meanwhile."""
    for name in _ORDER:
        last: tuple[object, ...] = () if name in _AT_ITS_BIRTH else (batch.wall,)
        rows = [_flat(row) + last for row in lists.rows.get(name, ())]
        write_exactly(batch.connection, name, rows)
    write_rows(batch.cursor, "insert_message", lists.messages)
    write_rows(batch.cursor, "insert_event", lists.events)
    for report in lists.reports:
        batch.run("insert_stale_reports", (batch.wall, *report))
    if lists.reports:
        batch.run("trim_stale_reports", (STALE_REPORTS_MAX,))


def _flat(row: tuple[Any, ...]) -> tuple[object, ...]:
    """Return the parameters of a statement: those of a named row are all of its fields."""
    flat: tuple[object, ...] = ()
    for part in row:
        flat += part if isinstance(part, tuple) else (part,)
    return flat
