"""The snapshot: where a run stands, folded from its events, the same bytes every time.

Keys are sorted, the indent is two spaces, the last byte is a line feed. Nothing in it depends on how often
the run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from tallystick.log.event import NOT_DECODABLE
from tallystick.runs.log.events import Count, ErrorRecord, Issue, SectionState, Severity


class WorkStatus(StrEnum):
    """How far a work item has got."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"


class WorkItem(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One attempt of one worker, perhaps at one scope; the id is `run:worker:attempt[:scope]`."""

    work_item_id: str
    worker: str
    attempt: Count
    status: WorkStatus
    inputs: list[str]
    outputs: list[str]
    scope_key: str = ""
    started_at: str = ""
    finished_at: str = ""
    error: ErrorRecord | None = None


class Artifact(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A file of the run; `stale` while something it rests on has changed and it was not made again."""

    path: str
    sha256: str
    schema_id: str
    writer_worker: str
    ts: str
    stale: bool = False


class Snapshot(msgspec.Struct, forbid_unknown_fields=True):
    """Where a run stands."""

    run_id: str
    run_state: str
    section_states: dict[str, SectionState]
    artifacts_index: dict[str, Artifact]
    work_items: list[WorkItem]
    issues: list[Issue]


_SEVERITY_ORDER: Final = {severity: order for order, severity in enumerate(Severity)}
_encoder: Final = msgspec.json.Encoder(order="sorted")
_decoder: Final = msgspec.json.Decoder(Snapshot)


def issue_order(issue: Issue) -> tuple[int, str, str, int, str]:
    """Return what issues are sorted by: severity, gate, path, line, id."""
    path, line = (issue.location.path, issue.location.line) if issue.location else ("", 0)
    return _SEVERITY_ORDER[issue.severity], issue.gate, path, line, issue.issue_id


def sorted_items(items: Iterable[WorkItem]) -> list[WorkItem]:
    """Return work items in the order of worker, scope and attempt: no race between workers can change it."""
    return sorted(items, key=lambda item: (item.worker, item.scope_key, item.attempt))


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """Return the one form that a snapshot has on the disk."""
    return msgspec.json.format(_encoder.encode(snapshot), indent=2) + b"\n"


def read_snapshot(data: bytes) -> Snapshot | None:
    """Return the snapshot that these bytes spell, or None when they spell none."""
    try:
        return _decoder.decode(data)
    except NOT_DECODABLE:
        return None
