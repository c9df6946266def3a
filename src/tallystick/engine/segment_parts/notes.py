"""What a claim brings beside records: values that the workflow drew, and the tries that failed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tallystick.core.json_forms.sealed import SEALED_WHY, is_sealed
from tallystick.store.api import Bundle, ClaimedJob, RecordEvent, RecordStep


def notes_in(bundle: Bundle) -> dict[str, object]:
    """Return the values that a bundle makes durable."""
    for primitive in bundle:
        if isinstance(primitive, RecordStep) and primitive.notes:
            return dict(msgspec.json.decode(primitive.notes))
        if isinstance(primitive, RecordEvent):
            return dict(msgspec.json.decode(primitive.fact.payload).get("notes", {}))
    return {}


def still_sealed(claimed: ClaimedJob) -> str:
    """Return why a job cannot run here, if a part of it is sealed that this program could not open."""
    wake = claimed.wake
    parts = {
        "its arguments": is_sealed(claimed.payload),
        "the message that woke it": wake is not None and is_sealed(wake.payload),
        "what it has recorded": any(is_sealed(r.result) or is_sealed(r.error) for r in claimed.records),
    }
    found = " and ".join(part for part, so in parts.items() if so)
    return f"{found}: sealed, and this worker cannot open that; {SEALED_WHY}" if found else ""


def left_by(claimed: ClaimedJob) -> tuple[dict[str, object], dict[tuple[str, int], int], str]:
    """Return the values that earlier segments drew and the tries that failed; and why not, if that is so."""
    try:
        return _notes_of(claimed), _tries_of(claimed), ""
    except Exception as error:  # noqa: BLE001 (whatever is wrong with a row, it is this job's alone)
        return {}, {}, f"{type(error).__name__}: {error}"


def _notes_of(claimed: ClaimedJob) -> dict[str, object]:
    """Return the values that earlier segments of a job have kept."""
    found: dict[str, object] = {}
    for text in _note_texts(claimed):
        found.update(msgspec.json.decode(text))
    return found


def _tries_of(claimed: ClaimedJob) -> dict[tuple[str, int], int]:
    """Return how many tries of each call have failed in earlier segments of a job."""
    tried = [msgspec.json.decode(event.payload) for event in claimed.tries if event.type == "try"]
    return {(one["step"], one["occurrence"]): one["try"] for one in tried}


def _note_texts(claimed: ClaimedJob) -> Iterable[str]:
    for record in claimed.records:
        if record.notes:
            yield record.notes
    for event in claimed.tries:
        notes = msgspec.json.decode(event.payload).get("notes")
        if notes:
            yield msgspec.json.encode(notes).decode()
