"""Jobs, steps, facts and effects as the HTTP API shows them, and how their rows become that."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from tallystick.core.effects.rows import EffectRow
from tallystick.core.lifecycles import JobState
from tallystick.core.remote.listing import PROTOCOL, StepRow
from tallystick.http.forms import Told
from tallystick.store.api import JobRow, StoredEvent


class JobShown(Told, frozen=True):
    """A job; instants are by the clock of the store."""

    job_id: str
    state: JobState
    tenant_id: str
    workflow: str
    version: str
    queue: str
    attempt: int
    hold: str | None
    created_at: str | None
    updated_at: str | None
    ready_at: str | None
    deadline_at: str | None
    completed_at: str | None
    error_code: str | None
    error_message: str | None
    idempotency_key: str | None
    tags: object
    result: object
    retry_of: str | None
    retried_as: str | None


class JobsPage(Told, frozen=True):
    """A page of jobs; `after` leads to the next one, if there is one."""

    jobs: list[JobShown]
    after: str | None


class StepShown(Told, frozen=True):
    """A step of a job, inline or remote."""

    step_id: str
    state: str
    kind: str
    step_type: str | None
    service: str | None
    attempt_no: int | None
    lane: str | None
    routing_key_used: str | None
    decision_source: str | None
    decision_reason: str | None
    mode: str | None
    lease_expires_at: str | None
    acked_at: str | None
    input_ref: object
    workspace_ref: object
    output_ref: object
    result: object
    error_code: str | None
    error_message: str | None
    created_at: str | None
    completed_at: str | None
    step_index: int | None
    artifact_refs: object


class StepsPage(Told, frozen=True):
    """A page of steps; `after` leads to the next one, if there is one."""

    steps: list[StepShown]
    after: str | None


class FactShown(Told, frozen=True):
    """A fact in the history of a job; each carries the hash of the one before."""

    n: int
    at: str | None
    attempt: int
    type: str
    details: object
    prev_hash: str
    hash: str


class HistoryPage(Told, frozen=True):
    """A page of facts; `after` leads to the next one, if there is one."""

    history: list[FactShown]
    after: int | None


class EffectShown(Told, frozen=True):
    """A call that reaches outside, from its intent to what came of it."""

    exec_id: str
    job_id: str
    step_id: str
    effect: str
    key: str
    stands: str
    calls: int
    probes: int
    arguments: object
    result: object
    error: object
    doubt: str | None
    created_at: str | None
    called_at: str | None
    due_at: str | None
    ended_at: str | None
    ended_by: str | None


class EffectsPage(Told, frozen=True):
    """A page of effects; `after` leads to the next one, if there is more to look at."""

    effects: list[EffectShown]
    after: str | None


def instant(ms: int | None) -> str | None:
    """Return an instant as RFC 3339 has it.

    >>> instant(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_of(text: str | None) -> object:
    """Return stored JSON as it is."""
    return None if text is None else msgspec.Raw(text.encode())


def ref_of(text: str | None) -> object:
    """Return a reference: text, or an object, which no text begins like."""
    return json_of(text) if text is not None and text.startswith("{") else text


def job_shown(row: JobRow) -> JobShown:
    """Return a job."""
    return JobShown(
        job_id=row.job_id,
        state=JobState(row.state),
        tenant_id=row.tenant_id,
        workflow=row.handler,
        version=row.version,
        queue=row.queue,
        attempt=row.attempt,
        hold=row.hold,
        created_at=instant(row.created_at),
        updated_at=instant(row.updated_at),
        ready_at=instant(row.ready_at),
        deadline_at=instant(row.deadline_at),
        completed_at=instant(row.completed_at),
        error_code=row.error_code,
        error_message=row.error_message,
        idempotency_key=row.idempotency_key,
        tags=json_of(row.tags),
        result=json_of(row.result),
        retry_of=row.retry_of,
        retried_as=row.retried_as,
    )


def step_shown(row: StepRow) -> StepShown:
    """Return a step."""
    return StepShown(
        step_id=row.step_id,
        state=row.state,
        kind=row.kind,
        step_type=row.step_type,
        service=row.service,
        attempt_no=row.attempt_no,
        lane=row.lane,
        routing_key_used=row.routing_key_used,
        decision_source=row.decision_source,
        decision_reason=row.decision_reason,
        mode=row.resolved_mode,
        lease_expires_at=instant(row.lease_expires_at),
        acked_at=instant(row.acked_at),
        input_ref=ref_of(row.input_ref),
        workspace_ref=ref_of(row.workspace_ref),
        output_ref=ref_of(row.output_ref),
        result=json_of(row.result),
        error_code=row.last_error_code,
        error_message=row.last_error_message,
        created_at=instant(row.created_at),
        completed_at=instant(row.completed_at),
        step_index=row.step_index if row.kind == PROTOCOL else None,
        artifact_refs=row.artifact_refs,
    )


def effect_shown(row: EffectRow) -> EffectShown:
    """Return an effect."""
    return EffectShown(
        exec_id=row.exec_id,
        job_id=row.job_id,
        step_id=row.unit,
        effect=row.effect,
        key=row.key,
        stands=row.outcome or row.phase,
        calls=row.calls,
        probes=row.probes,
        arguments=json_of(row.arguments),
        result=json_of(row.result),
        error=json_of(row.error),
        doubt=row.doubt,
        created_at=instant(row.created_at),
        called_at=instant(row.called_at),
        due_at=instant(row.due_at),
        ended_at=instant(row.ended_at),
        ended_by=row.ended_by,
    )


def fact_shown(fact: StoredEvent) -> FactShown:
    """Return a fact."""
    return FactShown(
        n=fact.n,
        at=instant(fact.at),
        attempt=fact.attempt,
        type=fact.type,
        details=json_of(fact.payload),
        prev_hash=fact.prev_hash.hex(),
        hash=fact.event_hash.hex(),
    )
