"""What is durable, as typed values: the suite looks at these, and plants them where no primitive writes yet.

A subject makes them from its own rows, documents or files. What a planted picture does not say has the value
that stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class JobPicture(NamedTuple):
    """A job."""

    job_id: str
    state: str
    created_at: int
    updated_at: int
    handler: str = "pay"
    payload: str = "{}"
    attempt: int = 0
    attempts_total: int = 0
    ready_at: int | None = None
    hold: str | None = None
    semaphore: int = 1
    start_ledger: int = 0
    start_redeliveries: int = 0
    start_acked_at: int | None = None
    completed_at: int | None = None
    parent_job_id: str | None = None
    retried_as: str | None = None
    root_ledger: int = 0
    deadline_at: int | None = None
    error_code: str | None = None
    result: str | None = None


class AttemptPicture(NamedTuple):
    """One try at a job, or at an effect of it that `unit` names."""

    job_id: str
    unit: str
    attempt: int
    status: str
    lease_id: str
    lease_epoch: str
    lease_expires_at: int
    lease_owner: str
    reason: str | None = None
    charged: int = 0
    finished_at: int | None = None


class StepPicture(NamedTuple):
    """A step, or an activity that waits: a wait, a sleep, a group."""

    job_id: str
    name: str
    occurrence: int
    kind: str
    state: str
    created_at: int
    ledger: int = 0
    n: int | None = None
    attempt: int | None = None
    origin_job_id: str | None = None
    semaphore: int | None = None
    failed: int | None = None


class MessagePicture(NamedTuple):
    """What has arrived for a job."""

    guid: str
    job_id: str
    name: str
    kind: str
    created_at: int
    occurrence: int | None = None
    payload: str | None = None
    ledger: int = 0
    acked_at: int | None = None


class FactPicture(NamedTuple):
    """A fact of a job's history that is not the record of a step."""

    job_id: str
    n: int
    type: str


class ReservationPicture(NamedTuple):
    """Which job a key or a content belongs to."""

    tenant_id: str
    scope: str
    value: str
    job_id: str


class DirectivePicture(NamedTuple):
    """What is on its way to a remote worker."""

    outbox_id: str
    tenant_id: str
    job_id: str
    step_id: str
    attempt_no: int
    lease_id: str
    state: str
    topic: str
    payload: str
    created_at: int
    updated_at: int


class StaleReportPicture(NamedTuple):
    """A report that came too late and was kept for people."""

    at: int
    job_id: str
    attempt: int
    lease_id: str
    report: str


Picture: TypeAlias = (
    JobPicture
    | AttemptPicture
    | StepPicture
    | MessagePicture
    | FactPicture
    | ReservationPicture
    | DirectivePicture
    | StaleReportPicture
)

Books: TypeAlias = Mapping[type[Picture], list[Mapping[str, object]]]
"""Every durable value by its name, those without a place in a picture too: equal if nothing has changed."""
