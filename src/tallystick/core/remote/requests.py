"""Requests about protocol jobs and remote steps. Each is one guarded change; a refused one changes nothing.

Identifiers come with the request, the time comes from the store. `lease_id` is a fresh one, for the directive
that a request may cause. `relays` says that the sender publishes that directive at once, as its first try.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from tallystick.core.pictures import Place
from tallystick.core.remote.rows import ProtocolJob, ProtocolStep, place_of_step
from tallystick.core.values import Reservation


class StepFence(NamedTuple):
    """The right of the remote worker that has this directive to report on it."""

    job_id: str
    step_id: str
    attempt_no: int
    lease_id: str


class NewProtocolJob(NamedTuple):
    """What the row of a protocol job says besides what decisions read."""

    request_type: str
    schema_version: str
    idempotency_key: str | None
    idempotency_hash: str | None
    canon_version: int | None
    retry_of: str | None = None


class SubmitCommand(NamedTuple):
    """Insert reservation, job, all steps, the first directive and the first fact: all or nothing.

    When the reservation exists already, nothing is written and the outcome is `Existing`.
    """

    job: ProtocolJob
    about: NewProtocolJob
    steps: tuple[ProtocolStep, ...]
    reservation: Reservation
    lease_id: str
    relays: bool = False

    @property
    def job_id(self) -> str:
        """Return the job that is to be born."""
        return self.job.job_id


class DispatchStep(NamedTuple):
    """Make the directive of the active step's next attempt, when its wait is over."""

    job_id: str
    lease_id: str
    relays: bool = False


class TakeDirective(NamedTuple):
    """Get the exclusive right to publish a directive once more, counted before it is published."""

    job_id: str
    step_id: str
    attempt_no: int


class DeliverDirective(NamedTuple):
    """Give a directive to a remote worker that asks for it: it is out in the same commit."""

    job_id: str
    step_id: str
    attempt_no: int
    worker: str


class MarkSent(NamedTuple):
    """Note that a directive is out; the time for its ACK begins."""

    fence: StepFence

    @property
    def job_id(self) -> str:
        """Return the job of the step."""
        return self.fence.job_id


class NotPublished(NamedTuple):
    """Note that try `try_no` could not publish a directive; `final` says that no other could either.

    `reason` is for operators: it may name hosts of their network. The job has what its tenant may read: which
    service it is, and what that `told`.
    """

    fence: StepFence
    try_no: int
    reason: str
    final: bool = False
    told: str = "could not be reached"

    @property
    def job_id(self) -> str:
        """Return the job of the step."""
        return self.fence.job_id


class AckStep(NamedTuple):
    """A remote worker has begun: the step is IN_PROGRESS, and its lease the one for the work."""

    fence: StepFence

    @property
    def job_id(self) -> str:
        """Return the job of the step."""
        return self.fence.job_id


class RenewStep(NamedTuple):
    """A remote worker is still at it: the lease of its step moves. Before any ACK it is one."""

    fence: StepFence

    @property
    def job_id(self) -> str:
        """Return the job of the step."""
        return self.fence.job_id


class StepAnswer(NamedTuple):
    """A RESULT as it is kept: `digest` is the same for every copy of it, whenever it was sent."""

    succeeded: bool
    digest: str
    retryable: bool = False
    error_code: str | None = None
    error_message: str | None = None
    error: str | None = None
    output_ref: str | None = None
    workspace_ref: str | None = None
    notes: str | None = None
    value: str | None = None


class AnswerStep(NamedTuple):
    """A remote worker has ended: the step ends or waits for its next attempt, and its job with it."""

    fence: StepFence
    answer: StepAnswer
    lease_id: str
    relays: bool = False

    @property
    def job_id(self) -> str:
        """Return the job of the step."""
        return self.fence.job_id


class ExpireStep(NamedTuple):
    """Act on a step whose time is over, as the sweep does: no ACK, no RESULT, or its wait has ended.

    In a protocol job that is the active one; a step of a workflow is named.
    """

    job_id: str
    lease_id: str
    relays: bool = False
    step_id: str = ""


class CancelProtocol(NamedTuple):
    """Cancel a protocol job: at once with nothing in flight, else when its step ends; `force` never waits."""

    job_id: str
    force: bool = False


Callback: TypeAlias = AckStep | RenewStep | AnswerStep
CALLBACKS: Final = (AckStep, RenewStep, AnswerStep)

ProtocolRequest: TypeAlias = (
    DispatchStep
    | TakeDirective
    | DeliverDirective
    | MarkSent
    | NotPublished
    | Callback
    | ExpireStep
    | CancelProtocol
)
"""The requests that are decided from the picture of a protocol job that is there."""

StepRequest: TypeAlias = (
    TakeDirective | DeliverDirective | MarkSent | NotPublished | AckStep | RenewStep | AnswerStep | ExpireStep
)
"""Those that are about one step, which may be that of a workflow."""


class DueStep(NamedTuple):
    """A remote step that needs the sweep; of a protocol job it is the active one, and not named."""

    job_id: str
    step_id: str = ""


def place_in_workflow(request: object) -> Place | None:
    """Return where the step of a workflow stands that a request is about; None for all other requests."""
    if not isinstance(request, _ABOUT_STEPS):
        return None
    return place_of_step(request.fence.step_id if isinstance(request, _FENCED) else request.step_id)


_FENCED: Final = (MarkSent, NotPublished, AckStep, RenewStep, AnswerStep)
_ABOUT_STEPS: Final = (*_FENCED, TakeDirective, DeliverDirective, ExpireStep)
