"""Plans for protocol jobs: rows as they are to be, each guarded by the revision that was seen, and an answer.

A row appears once in a plan, however many moves it made: a store applies a list in any order that it likes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from tallystick.core.pictures import Message
from tallystick.core.remote.requests import CALLBACKS, NewProtocolJob
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep


class Heard(StrEnum):
    """What became of a request; the value is the sentence people read."""

    CREATED = "the job is made, its first directive is on its way"
    DONE = "done"
    NOT_DUE = "nothing is due yet"
    TAKEN = "the right to publish is yours"
    LATER = "noted; another try follows"
    ACCEPTED = "accepted"
    DUPLICATE = "it was accepted before; nothing changed"
    CANCELLING = "the job is being cancelled; end the work"
    CANCELLED = "the job is cancelled"
    FINAL = "the job has ended"
    STALE = "this attempt is over; nothing changed"
    EXPIRED = "the lease has ended; nothing changed"
    CONFLICT = "another RESULT was accepted for this attempt; nothing changed"
    UNKNOWN = "there is no such step"


REFUSED: Final = frozenset({Heard.STALE, Heard.EXPIRED, Heard.CONFLICT})
"""Answers to a callback that changes nothing and is kept for people."""


StaleReport: TypeAlias = tuple[str, int, str, str]
"""Job, attempt, lease and name of a report that was refused."""


def stale_report(request: object, heard: Heard) -> StaleReport | None:
    """Return what is kept for people of a report that was refused."""
    if not isinstance(request, CALLBACKS) or heard not in REFUSED:
        return None
    fence = request.fence
    return (fence.job_id, fence.attempt_no, fence.lease_id, f"{type(request).__name__} {fence.step_id}")


class StepFactDraft(NamedTuple):
    """What the fact of a change says; a store gives it its place in the chain."""

    kind: str
    attempt: int
    payload: str


class InsertProtocolJob(NamedTuple):
    """A protocol job is born."""

    job: ProtocolJob
    about: NewProtocolJob


class MoveProtocolJob(NamedTuple):
    """The row of a protocol job as it is to be; its fact becomes the newest of its chain."""

    job: ProtocolJob
    rev: int


class InsertProtocolStep(NamedTuple):
    """A remote step is born with its job."""

    step: ProtocolStep


class MoveProtocolStep(NamedTuple):
    """The row of a remote step as it is to be."""

    step: ProtocolStep
    rev: int


class InsertOutbox(NamedTuple):
    """A directive begins its way."""

    row: OutboxRow


class MoveOutbox(NamedTuple):
    """A directive goes on, or is out, or never goes."""

    row: OutboxRow
    rev: int


class InsertAnswer(NamedTuple):
    """The message that ended a step or a job, with all its digits and acknowledged."""

    message: Message


ProtocolWrite: TypeAlias = (
    InsertProtocolJob
    | MoveProtocolJob
    | InsertProtocolStep
    | MoveProtocolStep
    | InsertOutbox
    | MoveOutbox
    | InsertAnswer
)


class Hearing(NamedTuple):
    """The outcome of a request: what became of it, and what its sender should know."""

    heard: Heard
    # Whether the job was asked to end; every answer to a callback says so.
    cancelling: bool = False
    # The directive that the request made or took, for the process that is its relay now.
    directive: OutboxRow | None = None
    lease_expires_at: int | None = None


class ProtocolPlan(NamedTuple):
    """What a request comes to. A plan without writes has no fact."""

    heard: Heard
    writes: tuple[ProtocolWrite, ...] = ()
    told: StepFactDraft | None = None
    cancelling: bool = False
    directive: OutboxRow | None = None
    lease_expires_at: int | None = None

    @property
    def hearing(self) -> Hearing:
        """Return the answer to the caller."""
        return Hearing(self.heard, self.cancelling, self.directive, self.lease_expires_at)
