"""What can happen to a run: every type of event with the shape of its payload.

Payloads hold only texts, integers, truth values, lists and objects of these, so that their sorted encoding is
canonical JSON. Keys of objects are ASCII.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec


class EventType(StrEnum):
    """Every type of event that a run can record."""

    RUN_CREATED = "RUN_CREATED"
    RUN_STATE_CHANGED = "RUN_STATE_CHANGED"
    INVALID_STATE_TRANSITION = "INVALID_STATE_TRANSITION"
    RESUME_STARTED = "RESUME_STARTED"
    RESUME_REWIND = "RESUME_REWIND"
    RESUME_TAIL_REPAIRED = "RESUME_TAIL_REPAIRED"
    RESUME_WORK_ITEM = "RESUME_WORK_ITEM"
    WORK_ITEM_QUEUED = "WORK_ITEM_QUEUED"
    WORK_ITEM_STARTED = "WORK_ITEM_STARTED"
    WORK_ITEM_FINISHED = "WORK_ITEM_FINISHED"
    WORK_ITEM_FAILED = "WORK_ITEM_FAILED"
    WORK_ITEM_SKIPPED = "WORK_ITEM_SKIPPED"
    WORK_ITEM_INVALIDATED = "WORK_ITEM_INVALIDATED"
    ARTIFACT_WRITTEN = "ARTIFACT_WRITTEN"
    ARTIFACT_INVALIDATED = "ARTIFACT_INVALIDATED"
    SECTION_STATE_CHANGED = "SECTION_STATE_CHANGED"
    ISSUE_OPENED = "ISSUE_OPENED"
    ISSUE_STATUS_CHANGED = "ISSUE_STATUS_CHANGED"


class SectionState(StrEnum):
    """How far one section of the product has got."""

    NOT_STARTED = "NOT_STARTED"
    OUTLINED = "OUTLINED"
    DRAFTED = "DRAFTED"
    MERGED_IN_WORKTREE = "MERGED_IN_WORKTREE"
    DONE = "DONE"
    BLOCKED = "BLOCKED"


class Severity(StrEnum):
    """How bad an issue is, the worst first."""

    BLOCKER = "blocker"
    ERROR = "error"
    WARN = "warn"
    INFO = "info"


class IssueStatus(StrEnum):
    """Whether an issue still needs work."""

    OPEN = "OPEN"
    IN_PROGRESS = "IN_PROGRESS"
    RESOLVED = "RESOLVED"


# Attempts and visits are counted from 1.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The part of an event that its type gives a shape."""


class EdgeRecord(Payload, frozen=True):
    """One legal move; `when` is the outcome that chooses it."""

    source: str
    target: str
    when: str = ""


class GraphRecord(Payload, frozen=True):
    """The state graph of a pipeline, kept in the log so that a replay does not need the program."""

    start: str
    edges: list[EdgeRecord]
    final: list[str]
    stable: list[str] = []
    rewinds: dict[str, str] = {}
    limits: dict[str, int] = {}


class RunCreated(Payload, frozen=True):
    """A run began; `previous_log_sha256` names the log that had to be set aside."""

    pipeline: str
    graph: GraphRecord
    trace_id: str
    span_id: str
    previous_log_sha256: str = ""
    previous_log: str = ""


# The reason of a move that a rewind had taken back and that is now taken again.
RETRACED: Final = "resume"


class StateMove(Payload, frozen=True):
    """The run went, or was asked to go, from one state to another; a way walked again has reason `resume`."""

    from_state: str
    to_state: str
    reason: str = ""


class Rewind(Payload, frozen=True):
    """A resume went back to a state; `visit` says to which of the times the run had entered it."""

    from_state: str
    to_state: str
    visit: Count
    reason: str = ""


class ResumeStarted(Payload, frozen=True):
    """A process took the run over."""

    span_id: str


class TailRepaired(Payload, frozen=True):
    """The end of the log was torn: `cut` moved it to `kept_as`, `newline` completed it."""

    action: str
    bytes: int
    kept_as: str = ""


class ItemResumed(Payload, frozen=True):
    """A work item that was interrupted is done again, perhaps with other artifacts (`inputs`) in hand."""

    work_item_id: str
    span_id: str
    inputs: list[str] | None = None


class ItemQueued(Payload, frozen=True):
    """There is work to do: attempt `attempt` of a worker, for visit `visit` of a state."""

    work_item_id: str
    worker: str
    attempt: Count
    state: str
    visit: Count
    scope_key: str = ""


class ItemStarted(Payload, frozen=True):
    """A worker began, with these artifacts in hand."""

    work_item_id: str
    span_id: str
    inputs: list[str]


class ItemFinished(Payload, frozen=True):
    """A worker is done; `outcome` may choose the next state."""

    work_item_id: str
    outputs: list[str]
    outcome: str = ""


class ErrorRecord(Payload, frozen=True):
    """An exception as data; it is never turned back into an exception."""

    type: str
    message: str


class ItemFailed(Payload, frozen=True):
    """A worker raised."""

    work_item_id: str
    error: ErrorRecord


class ItemReason(Payload, frozen=True):
    """A work item was skipped, or must be done again, and why."""

    work_item_id: str
    reason: str


class ArtifactWritten(Payload, frozen=True):
    """An artifact has this content from now on."""

    name: str
    path: str
    sha256: str
    schema_id: str
    writer_worker: str
    work_item_id: str = ""


class ArtifactInvalidated(Payload, frozen=True):
    """An artifact rests on something that changed."""

    name: str
    because_of: str


class SectionMove(Payload, frozen=True):
    """A section went from one state to another."""

    section: str
    from_state: SectionState
    to_state: SectionState


class Location(Payload, frozen=True):
    """A place in a file."""

    path: str
    line: int = 0


class Issue(Payload, frozen=True):
    """Something a person or a later worker has to look at; `error_code` is there for errors and blockers."""

    issue_id: str
    gate: str
    severity: Severity
    message: str
    # A factory, because a plain default is left out of the log, and an open issue says that it is open.
    status: IssueStatus = msgspec.field(default_factory=lambda: IssueStatus.OPEN)
    error_code: str = ""
    files: list[str] = []
    location: Location | None = None
    suggested_fix: str = ""


class IssueMove(Payload, frozen=True):
    """An issue changed its status."""

    issue_id: str
    status: IssueStatus


PAYLOADS: Final[dict[EventType, type[Payload]]] = {
    EventType.RUN_CREATED: RunCreated,
    EventType.RUN_STATE_CHANGED: StateMove,
    EventType.INVALID_STATE_TRANSITION: StateMove,
    EventType.RESUME_STARTED: ResumeStarted,
    EventType.RESUME_REWIND: Rewind,
    EventType.RESUME_TAIL_REPAIRED: TailRepaired,
    EventType.RESUME_WORK_ITEM: ItemResumed,
    EventType.WORK_ITEM_QUEUED: ItemQueued,
    EventType.WORK_ITEM_STARTED: ItemStarted,
    EventType.WORK_ITEM_FINISHED: ItemFinished,
    EventType.WORK_ITEM_FAILED: ItemFailed,
    EventType.WORK_ITEM_SKIPPED: ItemReason,
    EventType.WORK_ITEM_INVALIDATED: ItemReason,
    EventType.ARTIFACT_WRITTEN: ArtifactWritten,
    EventType.ARTIFACT_INVALIDATED: ArtifactInvalidated,
    EventType.SECTION_STATE_CHANGED: SectionMove,
    EventType.ISSUE_OPENED: Issue,
    EventType.ISSUE_STATUS_CHANGED: IssueMove,
}
