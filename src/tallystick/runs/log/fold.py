"""Fold events into the state of a run; no other state is kept.

The fold is also the judge of the log: an event that no legal history can contain raises `ImpossibleEvent`,
so a log whose hashes are right and whose story is wrong does not pass either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from tallystick.log.event import NOT_DECODABLE, LogEvent
from tallystick.runs.log.events import (
    PAYLOADS,
    ArtifactInvalidated,
    ArtifactWritten,
    EventType,
    GraphRecord,
    Issue,
    IssueMove,
    ItemFailed,
    ItemFinished,
    ItemQueued,
    ItemReason,
    ItemResumed,
    ItemStarted,
    Payload,
    ResumeStarted,
    Rewind,
    RunCreated,
    SectionMove,
    SectionState,
    StateMove,
    TailRepaired,
)
from tallystick.runs.log.snapshot import Artifact, Snapshot, WorkItem, WorkStatus, issue_order, sorted_items


class ImpossibleEvent(Exception):
    """This event cannot follow the events before it."""


class UnknownEvent(Exception):
    """A version that knows more wrote this event; nothing is wrong with it."""


@dataclass(frozen=True, slots=True)
class WorkKey:
    """What a work item is an attempt at: one worker, one scope, one visit of a state."""

    worker: str
    scope_key: str
    state: str
    visit: int


@dataclass(slots=True)
class RunView:
    """Everything that the events so far say, including what the snapshot does not show."""

    run_id: str
    trace_id: str = ""
    pipeline: str = ""
    graph: GraphRecord = field(default_factory=lambda: GraphRecord("", [], []))
    state: str = ""
    path: list[str] = field(default_factory=list)
    retrace: list[str] = field(default_factory=list)
    spans: set[str] = field(default_factory=set)
    sections: dict[str, SectionState] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    items: dict[str, WorkItem] = field(default_factory=dict)
    work_keys: dict[str, WorkKey] = field(default_factory=dict)
    attempts: dict[WorkKey, str] = field(default_factory=dict)
    attempts_used: dict[tuple[str, str], int] = field(default_factory=dict)
    failures: dict[WorkKey, int] = field(default_factory=dict)
    previous_log_sha256: str = ""
    done: dict[WorkKey, str] = field(default_factory=dict)
    ever_done: set[WorkKey] = field(default_factory=set)
    outcomes: dict[str, str] = field(default_factory=dict)
    writers: dict[str, str] = field(default_factory=dict)
    issues: dict[str, Issue] = field(default_factory=dict)
    repaired_tails: set[str] = field(default_factory=set)
    moves: frozenset[tuple[str, str]] = frozenset()
    item_spans: dict[str, str] = field(default_factory=dict)

    @property
    def created(self) -> bool:
        """Return whether the run has begun."""
        return bool(self.path)

    @property
    def ended(self) -> bool:
        """Return whether the run is in a final state."""
        return self.state in self.graph.final

    def visits(self, state: str) -> int:
        """Return how often the run has entered a state, not counting what was rewound."""
        return self.path.count(state)

    def can_move(self, target: str) -> bool:
        """Return whether the graph lists the move from here to `target`."""
        return (self.state, target) in self.moves

    def snapshot(self) -> Snapshot:
        """Return the snapshot: the part of the state that is written for readers."""
        return Snapshot(
            run_id=self.run_id,
            run_state=self.state,
            section_states=dict(self.sections),
            artifacts_index=dict(self.artifacts),
            work_items=sorted_items(self.items.values()),
            issues=sorted(self.issues.values(), key=issue_order),
        )

    def replay(self, event: LogEvent) -> None:
        """Take in an event that was read from a log."""
        found = _TABLE.get(event.type)
        if found is None:
            raise UnknownEvent(f"{event.type[:80]!r} is not a type of event that this version knows")
        decode, apply = found
        try:
            payload = decode(event.payload)
        except NOT_DECODABLE as error:
            raise ImpossibleEvent(f"the payload of {event.type} is malformed: {error}") from error
        if event.run_id != self.run_id:
            raise ImpossibleEvent(f"the event belongs to run {event.run_id[:140]!r}")
        apply(self, payload, event.ts)
        if event.span_id not in self.spans or event.trace_id != self.trace_id:
            raise ImpossibleEvent("the event belongs to a trace or span that this run never opened")
        if event.parent_span_id and event.parent_span_id not in self.spans:
            raise ImpossibleEvent("the event names a parent span that this run never opened")

    def apply(self, kind: EventType, payload: Payload, ts: str) -> None:
        """Take in an event that was just appended."""
        _TABLE[kind][1](self, payload, ts)

    def item(self, work_item_id: str, *allowed: WorkStatus) -> WorkItem:
        """Return a work item that must be there, in one of the allowed statuses."""
        item = self.items.get(work_item_id)
        if item is None:
            raise ImpossibleEvent(f"there is no work item {work_item_id[:300]!r}")
        if item.status not in allowed:
            raise ImpossibleEvent(f"work item {work_item_id} is {item.status}")
        return item


def _run_created(view: RunView, payload: RunCreated, _ts: str) -> None:
    if view.path:
        raise ImpossibleEvent("the run was created before")
    view.pipeline, view.graph, view.trace_id = payload.pipeline, payload.graph, payload.trace_id
    view.previous_log_sha256 = payload.previous_log_sha256
    view.state = payload.graph.start
    view.path.append(view.state)
    view.spans.add(payload.span_id)
    view.moves = frozenset((edge.source, edge.target) for edge in payload.graph.edges)


def _state_changed(view: RunView, payload: StateMove, _ts: str) -> None:
    _check_origin(view, payload)
    if not view.can_move(payload.to_state):
        raise ImpossibleEvent(f"the graph has no move {payload.from_state} → {payload.to_state}")
    view.state = payload.to_state
    view.path.append(view.state)
    view.retrace = view.retrace[1:] if view.retrace[:1] == [view.state] else []


def _refused(view: RunView, payload: StateMove, _ts: str) -> None:
    _check_origin(view, payload)
    if view.can_move(payload.to_state):
        raise ImpossibleEvent(
            f"{payload.from_state} → {payload.to_state} is legal and was recorded as refused"
        )


def _rewound(view: RunView, payload: Rewind, _ts: str) -> None:
    _check_origin(view, payload)
    entries = [index for index, state in enumerate(view.path) if state == payload.to_state]
    if not 0 < payload.visit <= len(entries) or view.ended:
        raise ImpossibleEvent(f"the run cannot be rewound to visit {payload.visit} of {payload.to_state}")
    keep = entries[payload.visit - 1] + 1
    view.retrace = view.path[keep:] + view.retrace
    del view.path[keep:]
    view.state = payload.to_state


def _check_origin(view: RunView, payload: StateMove | Rewind) -> None:
    if not view.path:
        raise ImpossibleEvent("the log does not begin with RUN_CREATED")
    if payload.from_state != view.state:
        raise ImpossibleEvent(f"the run is {view.state}, not {payload.from_state}")


def _resume_started(view: RunView, payload: ResumeStarted, _ts: str) -> None:
    view.spans.add(payload.span_id)


def _tail_repaired(view: RunView, payload: TailRepaired, _ts: str) -> None:
    if payload.kept_as:
        view.repaired_tails.add(payload.kept_as)


def _item_resumed(view: RunView, payload: ItemResumed, _ts: str) -> None:
    item = view.item(payload.work_item_id, WorkStatus.RUNNING)
    if payload.inputs is not None:
        item.inputs = payload.inputs
    _open_span(view, payload.work_item_id, payload.span_id)


def _item_queued(view: RunView, payload: ItemQueued, _ts: str) -> None:
    if payload.work_item_id in view.items:
        raise ImpossibleEvent(f"work item {payload.work_item_id} was queued before")
    work_key = WorkKey(payload.worker, payload.scope_key, payload.state, payload.visit)
    view.work_keys[payload.work_item_id] = work_key
    view.attempts[work_key] = payload.work_item_id
    view.attempts_used[payload.worker, payload.scope_key] = payload.attempt
    view.items[payload.work_item_id] = WorkItem(
        payload.work_item_id, payload.worker, payload.attempt, WorkStatus.QUEUED, [], [], payload.scope_key
    )


def _item_started(view: RunView, payload: ItemStarted, ts: str) -> None:
    item = view.item(payload.work_item_id, WorkStatus.QUEUED)
    item.status, item.inputs, item.started_at = WorkStatus.RUNNING, payload.inputs, ts
    _open_span(view, payload.work_item_id, payload.span_id)


def _open_span(view: RunView, work_item_id: str, span_id: str) -> None:
    view.spans.discard(view.item_spans.get(work_item_id, ""))
    view.item_spans[work_item_id] = span_id
    view.spans.add(span_id)


def _item_finished(view: RunView, payload: ItemFinished, ts: str) -> None:
    item = view.item(payload.work_item_id, WorkStatus.RUNNING)
    item.status, item.outputs, item.finished_at = WorkStatus.FINISHED, payload.outputs, ts
    work_key = view.work_keys[payload.work_item_id]
    view.done[work_key] = payload.work_item_id
    view.ever_done.add(work_key)
    view.outcomes[payload.work_item_id] = payload.outcome


def _item_failed(view: RunView, payload: ItemFailed, ts: str) -> None:
    item = view.item(payload.work_item_id, WorkStatus.RUNNING)
    item.status, item.error, item.finished_at = WorkStatus.FAILED, payload.error, ts
    work_key = view.work_keys[payload.work_item_id]
    # Taken out and put in again: the order is that of the latest failures.
    view.failures[work_key] = view.failures.pop(work_key, 0) + 1


def _item_skipped(view: RunView, payload: ItemReason, ts: str) -> None:
    item = view.item(payload.work_item_id, WorkStatus.QUEUED)
    item.status, item.finished_at = WorkStatus.SKIPPED, ts


def _item_invalidated(view: RunView, payload: ItemReason, _ts: str) -> None:
    view.item(payload.work_item_id, WorkStatus.FINISHED)
    work_key = view.work_keys[payload.work_item_id]
    if view.done.get(work_key) == payload.work_item_id:
        del view.done[work_key]
        view.failures.pop(work_key, None)


def _artifact_written(view: RunView, payload: ArtifactWritten, ts: str) -> None:
    view.artifacts[payload.name] = Artifact(
        payload.path, payload.sha256, payload.schema_id, payload.writer_worker, ts
    )
    if payload.work_item_id:
        view.item(payload.work_item_id, WorkStatus.RUNNING)
        view.writers[payload.name] = payload.work_item_id


def _artifact_invalidated(view: RunView, payload: ArtifactInvalidated, _ts: str) -> None:
    artifact = view.artifacts.get(payload.name)
    if artifact is None:
        raise ImpossibleEvent(f"there is no artifact {payload.name[:300]!r}")
    artifact.stale = True


def _section_changed(view: RunView, payload: SectionMove, _ts: str) -> None:
    if view.sections.get(payload.section, SectionState.NOT_STARTED) is not payload.from_state:
        raise ImpossibleEvent(f"section {payload.section[:300]!r} is not {payload.from_state}")
    view.sections[payload.section] = payload.to_state


def _issue_opened(view: RunView, payload: Issue, _ts: str) -> None:
    view.issues[payload.issue_id] = payload


def _issue_moved(view: RunView, payload: IssueMove, _ts: str) -> None:
    issue = view.issues.get(payload.issue_id)
    if issue is None:
        raise ImpossibleEvent(f"there is no issue {payload.issue_id[:300]!r}")
    view.issues[payload.issue_id] = msgspec.structs.replace(issue, status=payload.status)


_APPLY: Final[dict[EventType, Callable[[RunView, Any, str], None]]] = {
    EventType.RUN_CREATED: _run_created,
    EventType.RUN_STATE_CHANGED: _state_changed,
    EventType.INVALID_STATE_TRANSITION: _refused,
    EventType.RESUME_STARTED: _resume_started,
    EventType.RESUME_REWIND: _rewound,
    EventType.RESUME_TAIL_REPAIRED: _tail_repaired,
    EventType.RESUME_WORK_ITEM: _item_resumed,
    EventType.WORK_ITEM_QUEUED: _item_queued,
    EventType.WORK_ITEM_STARTED: _item_started,
    EventType.WORK_ITEM_FINISHED: _item_finished,
    EventType.WORK_ITEM_FAILED: _item_failed,
    EventType.WORK_ITEM_SKIPPED: _item_skipped,
    EventType.WORK_ITEM_INVALIDATED: _item_invalidated,
    EventType.ARTIFACT_WRITTEN: _artifact_written,
    EventType.ARTIFACT_INVALIDATED: _artifact_invalidated,
    EventType.SECTION_STATE_CHANGED: _section_changed,
    EventType.ISSUE_OPENED: _issue_opened,
    EventType.ISSUE_STATUS_CHANGED: _issue_moved,
}

_TABLE: Final[dict[str, tuple[Callable[[msgspec.Raw], Any], Callable[[RunView, Any, str], None]]]] = {
    kind: (msgspec.json.Decoder(PAYLOADS[kind]).decode, apply) for kind, apply in _APPLY.items()
}
