"""The records of telemetry: one for every run, work item and event, and later changes of the first two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tallystick.runs.definition.pipeline import CANCELLED, FAILED
from tallystick.runs.log.events import EventType, ItemFailed
from tallystick.runs.log.recorder import Recording

BATCH_RECORDS_MAX: Final = 1_000
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Word = Annotated[str, msgspec.Meta(max_length=128)]


class RecordKind(StrEnum):
    """What a record is about."""

    RUN = "run"
    CHILD = "child"
    EVENT = "event"


class Status(StrEnum):
    """How a run or a piece of its work stands; these six, whatever the states of a pipeline are called."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class CommitSource(StrEnum):
    """The source of the claim that a commit belongs to a run."""

    MANUAL = "manual"
    LLM = "llm"
    CI = "ci"


class TelemetryRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that is known once; `record_id` is the run id, the work item id or the event id.

    An event has no status: it has happened.
    """

    record_id: Id
    kind: RecordKind
    run_id: Id
    name: Word
    ts: Word
    status: Status | None = None
    parent_id: Annotated[str, msgspec.Meta(max_length=512)] = ""
    trace_id: Word = ""
    span_id: Word = ""
    data: dict[str, Any] = {}


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What became of a record since."""

    status: Status | None = None
    finished_at: Word = ""
    error: Annotated[str, msgspec.Meta(max_length=4096)] = ""


class RecordBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """New records, and after them what became of these or of others, by their ids."""

    records: list[TelemetryRecord] = []
    changes: dict[Id, Change] = {}


class Association(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A commit that came out of a run, and the source of that claim."""

    commit: Word
    source: CommitSource


class Telling(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to tell: a new record, or a change of the record with this id."""

    record: TelemetryRecord | None = None
    record_id: str = ""
    change: Change | None = None


_CHILD_STATUS: Final = {
    EventType.WORK_ITEM_STARTED: Status.RUNNING,
    EventType.WORK_ITEM_FINISHED: Status.SUCCESS,
    EventType.WORK_ITEM_FAILED: Status.FAILURE,
    EventType.WORK_ITEM_SKIPPED: Status.CANCELLED,
}
# The first word about a work item: it is begun, or it never will be.
_FIRST_SEEN: Final = {EventType.WORK_ITEM_STARTED, EventType.WORK_ITEM_SKIPPED}
_END_STATUS: Final = {FAILED: Status.FAILURE, CANCELLED: Status.CANCELLED}


def batches(waiting: Sequence[Telling]) -> Iterator[RecordBatch]:
    """Yield the fewest batches that tell everything; the last word about a record counts."""
    for start in range(0, len(waiting), BATCH_RECORDS_MAX):
        part = waiting[start : start + BATCH_RECORDS_MAX]
        changes: dict[str, Change] = {}
        for telling in part:
            if telling.change is not None:
                old, new = changes.get(telling.record_id, Change()), telling.change
                changes[telling.record_id] = Change(
                    new.status or old.status, new.finished_at or old.finished_at, new.error or old.error
                )
        yield RecordBatch([telling.record for telling in part if telling.record is not None], changes)


def tellings(recording: Recording) -> Iterator[Telling]:
    """Yield what a service should be told about facts that have just become durable.

    Work that only waits for its turn is no record yet: it is neither running nor anything else of the six.
    """
    view, ts, trace_id = recording.view, recording.ts, recording.span.trace_id
    for (kind, payload), event_id in zip(recording.facts, recording.event_ids, strict=True):
        item_id: str = getattr(payload, "work_item_id", "")
        if kind is EventType.RUN_CREATED:
            yield Telling(
                TelemetryRecord(
                    view.run_id, RecordKind.RUN, view.run_id, view.pipeline, ts, Status.RUNNING, "", trace_id
                )
            )
        elif kind in _FIRST_SEEN:
            worker = view.items[item_id].worker
            yield Telling(
                TelemetryRecord(
                    item_id,
                    RecordKind.CHILD,
                    view.run_id,
                    worker,
                    ts,
                    _CHILD_STATUS[kind],
                    view.run_id,
                    trace_id,
                )
            )
        yield Telling(
            TelemetryRecord(
                event_id,
                RecordKind.EVENT,
                view.run_id,
                kind.value,
                ts,
                parent_id=item_id or view.run_id,
                trace_id=trace_id,
                span_id=recording.span.span_id,
                data=msgspec.to_builtins(payload),
            )
        )
        if kind is EventType.RUN_STATE_CHANGED and view.ended:
            yield Telling(
                record_id=view.run_id, change=Change(_END_STATUS.get(view.state, Status.SUCCESS), ts)
            )
        elif kind in _CHILD_STATUS and kind is not EventType.WORK_ITEM_STARTED:
            error = payload.error.message if isinstance(payload, ItemFailed) else ""
            yield Telling(record_id=item_id, change=Change(_CHILD_STATUS[kind], ts, error[:4096]))
