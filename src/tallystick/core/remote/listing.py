"""Steps of a job as people and programs look at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from tallystick.errors import BadInput

PROTOCOL = "protocol"
_REMOTE: Final = (PROTOCOL, "remote")


class StepRow(NamedTuple):
    """One step of any kind; what is about remote work is empty for the others."""

    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    step_type: str | None
    service: str | None
    attempt_no: int | None
    lane: str | None
    routing_key_used: str | None
    decision_source: str | None
    decision_reason: str | None
    resolved_mode: str | None
    lease_expires_at: int | None
    acked_at: int | None
    input_ref: str | None
    workspace_ref: str | None
    output_ref: str | None
    result: str | None
    last_error_code: str | None
    last_error_message: str | None
    created_at: int | None
    completed_at: int | None
    step_index: int | None
    notes: str | None

    @property
    def key(self) -> str:
        """Return its place among the steps of its job, for the page that follows."""
        return f"{self.dimension}/{self.name}#{self.occurrence}"

    @property
    def step_id(self) -> str:
        """Return what remote workers call it: a step of a protocol has its name alone."""
        return self.name if self.kind == PROTOCOL else self.key

    @property
    def artifact_refs(self) -> object:
        """Return what a remote worker has named as left besides its output; None if it has named nothing."""
        return artifact_refs(self.notes) if self.kind in _REMOTE else None


def artifact_refs(notes: str | None) -> object:
    """Return the references that the notes of a remote step have.

    >>> artifact_refs('{"artifact_refs":["s3://log",{"uri":"s3://text"}]}')
    ['s3://log', {'uri': 's3://text'}]
    """
    said = None if notes is None else msgspec.json.decode(notes)
    return said.get("artifact_refs") if isinstance(said, dict) else None


def protocol_page(rows: Sequence[StepRow], after: tuple[int, str, int] | None, limit: int) -> list[StepRow]:
    """Return a page of the steps of a protocol job in the order in which they are worked on.

    `rows` are all of them. Behind a step that is not among them there is nothing.
    """
    ordered = sorted(rows, key=lambda row: row.step_index or 0)
    if after is None:
        return ordered[:limit]
    names = [row.name for row in ordered]
    return ordered[names.index(after[1]) + 1 :][:limit] if after[1] in names else []


def step_key(text: str) -> tuple[int, str, int]:
    """Return dimension, name and occurrence of a place among steps.

    >>> step_key("0/charge#2")
    (0, 'charge', 2)
    """
    dimension, mark, rest = text.partition("/")
    name, numbered, occurrence = rest.rpartition("#")
    if not (mark and numbered and _is_small(dimension) and _is_small(occurrence)):
        raise BadInput(f"{text[:80]!r} is not a place among steps; pass what the page before has as `after`")
    return int(dimension), name, int(occurrence)


def _is_small(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
