"""Protocol jobs on a file: look, decide, write, with the lock held that everybody needs to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

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
    ProtocolWrite,
    stale_report,
)
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.submitting import submit
from tallystick.errors import InvariantBroken
from tallystick.store.api import Existing, Outcome, StoredEvent
from tallystick.store.refusals import STALE_REPORTS_MAX, Refused
from tallystick.store.sql.protocol_pictures import READS, pictures_of
from tallystick.store.sql.protocols import ABSENT, fact_of
from tallystick.store.sql.reads import listed
from tallystick.store.sqlite.looking import chain_end

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch


def decide_protocols(batch: SqliteBatch, requests: list[ProtocolRequest]) -> list[Outcome]:
    """Decide requests one after the other: each sees what the one before it wrote."""
    return [_decided(batch, request) for request in requests]


def submit_commands(batch: SqliteBatch, requests: list[SubmitCommand]) -> list[Outcome]:
    """Make jobs of commands, one after the other."""
    return [_submitted(batch, request) for request in requests]


def _decided(batch: SqliteBatch, request: ProtocolRequest) -> Outcome:
    """Decide a request from the picture of its job, and write what was decided."""
    asked = (listed([request.job_id]),)
    picture = pictures_of(*(batch.rows(name, asked) for name in READS)).get(request.job_id)
    if picture is None:
        return ABSENT
    plan = decide(picture, request, Now(batch.wall))
    if plan.writes:
        _write(batch, plan, Chain(request.job_id, *chain_end(batch.cursor, request.job_id)))
    report = stale_report(request, plan.heard)
    if report is not None:
        batch.run("insert_stale_reports", (batch.wall, *report))
        batch.run("trim_stale_reports", (STALE_REPORTS_MAX,))
    return plan.hearing


def _submitted(batch: SqliteBatch, request: SubmitCommand) -> Outcome:
    """Make a job of a command, unless the reservation shows that it was made before."""
    row = (*request.reservation, request.job_id, batch.wall)
    if not batch.changed("reserve", row):
        tenant_id, scope, value, *_content = request.reservation
        (found,) = batch.rows("reservations", (tenant_id, scope, value))
        return Existing._make(found)
    plan = submit(request, Now(batch.wall))
    _write(batch, plan, Chain(request.job_id))
    return plan.hearing


def _write(batch: SqliteBatch, plan: ProtocolPlan, chain: Chain) -> None:
    """Write a plan; whatever differs from what was looked at is a bug: the lock was held meanwhile."""
    fact = fact_of(plan, chain, batch.wall)
    event = None if fact is None else batch.placed(fact)
    for write in plan.writes:
        _apply(batch, write, event)
    if event is not None:
        batch.run("insert_event", event)


def _apply(batch: SqliteBatch, write: ProtocolWrite, event: StoredEvent | None) -> None:
    wall = batch.wall
    head = (None, None) if event is None else (event.n, event.event_hash)
    match write:
        case MoveProtocolJob(job, rev):
            _one(batch, "move_protocol_jobs", (*job, rev, *head, wall))
        case MoveProtocolStep(step, rev):
            _one(batch, "move_protocol_steps", (*step, rev, wall))
        case MoveOutbox(row, rev):
            _one(batch, "move_outbox", (*row, rev, wall))
        case InsertProtocolJob(job, about):
            batch.run("insert_protocol_jobs", (*job, *about, *head, wall))
        case InsertProtocolStep(step):
            batch.run("insert_protocol_steps", (*step, wall))
        case InsertOutbox(row):
            batch.run("insert_outbox", row)
        case InsertAnswer(message):
            batch.run("insert_message", message)
        case _:
            assert_never(write)


def _one(batch: SqliteBatch, name: str, row: tuple[object, ...]) -> None:
    if batch.changed(name, row) != 1:
        raise Refused(InvariantBroken(f"{name} did not change one row, as it was planned", statement=name))
