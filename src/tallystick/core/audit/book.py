"""The books of one job, as a check reads them: what its row claims, and the rows that must agree with it."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.pictures import Activity, Place
from tallystick.core.values import NewJob


class Book(NamedTuple):
    """What the row of a job claims about its own history, and what else there is to read of it.

    `open_waits` counts its activities that have not ended, `progress` is the newest attempt that has written
    one, and `has_waited` says whether it has activities or messages at all.
    """

    job_id: str
    state: str
    attempt: int
    dimension: int
    hold: str | None
    hold_reason: str | None
    semaphore: int
    root_ledger: int
    start_ledger: int
    start_acked_at: int | None
    cancel_at: int | None
    error_code: str | None
    ledger_form: int
    head_n: int
    head_hash: bytes
    rev: int
    options: str
    canon_version: int | None
    open_waits: int
    progress: int
    has_waited: bool
    updated_at: int


class AttemptRow(NamedTuple):
    """One attempt of a job; `guid` is the message that drove it."""

    attempt: int
    status: str
    lease_id: str
    lease_owner: str
    lease_epoch: str
    lease_expires_at: int
    reason: str | None
    charged: bool
    started_at: int | None
    finished_at: int | None
    guid: str


class ActivityRow(NamedTuple):
    """A wait, a sleep or a group, the place of its fact, and whether a fork was born with it as a copy."""

    activity: Activity
    n: int | None
    is_copy: bool


class JobRest(NamedTuple):
    """The columns of a job that neither its book nor its submission has."""

    ready_at: int | None
    start_redeliveries: int
    updated_at: int
    completed_at: int | None
    result: str | None
    error: str | None
    error_message: str | None
    protocol_id: str | None
    mode: str | None
    doc_id: str | None
    current_step_id: str | None
    current_step_index: int | None
    attempts_total: int
    parent_step: str | None
    retry_of: str | None
    retried_as: str | None
    pruned_at: int | None


class WholeJob(NamedTuple):
    """What was submitted, as the row of the job has it, and all else that the row says."""

    born: NewJob
    rest: JobRest


class StepRest(NamedTuple):
    """A step, wait or group with the columns that its fact does not tell."""

    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    n: int | None
    attempt: int | None
    created_at: int
    completed_at: int | None
    rev: int
    origin_job_id: str | None
    origin_dimension: int | None
    has_result: bool
    has_hash: bool
    mode: str | None
    semaphore: int | None
    threshold: int | None
    failed: int | None
    # What only steps of protocol jobs have.
    step_index: int | None
    step_type: str | None
    service: str | None
    attempt_no: int | None
    lease_id: str | None
    lease_expires_at: int | None
    input_ref: str | None
    workspace_ref: str | None
    output_ref: str | None
    resolved_mode: str | None
    lane: str | None
    routing_key_used: str | None
    decision_source: str | None
    decision_reason: str | None
    last_error_code: str | None
    last_error_message: str | None
    updated_at: int | None
    misplaced: int | None
    acked_at: int | None
    answers: str | None
    options: str | None

    @property
    def place(self) -> Place:
        """Return where it stands in its job."""
        return (self.dimension, self.name, self.occurrence)


class Kept(NamedTuple):
    """A reservation."""

    tenant_id: str
    scope: str
    value: str
    job_id: str
    content_hash: str
    canon_version: int
    created_at: int

    @property
    def where(self) -> tuple[str, str, str]:
        """Return what it keeps: there is one reservation for it."""
        return (self.tenant_id, self.scope, self.value)


class Finding(NamedTuple):
    """One thing that does not agree: in which job, by which rule, and in words, beginning with the row."""

    job_id: str
    check: str
    message: str


FINDINGS_KEPT_MAX = 100


class Findings(list[Finding]):
    """What was found in one job: where it begins is what matters, so only the first are kept."""

    def __init__(self, job_id: str) -> None:
        """Begin with nothing."""
        super().__init__()
        self._job_id = job_id

    def note(self, check: str, message: str) -> None:
        """Add one, unless there are many: one broken job must not fill the memory."""
        if len(self) < FINDINGS_KEPT_MAX:
            self.append(Finding(self._job_id, check, message))
