"""The books of one job, as a check reads them: what its row claims, and the rows that must agree with it."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.pictures import Activity


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


class Content(NamedTuple):
    """What a submission is known by, as its row has it, and the hash that was made of it then."""

    tenant_id: str
    request_type: str | None
    input_ref: str | None
    output_ref: str | None
    payload: str
    schema_version: str | None
    version: str
    idempotency_hash: str
    canon_version: int


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
