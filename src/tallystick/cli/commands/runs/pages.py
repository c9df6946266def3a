"""What people read about a run. Texts that came from workers are printed without control characters."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from tallystick.cli.commands.books.machines import aligned
from tallystick.cli.render.output import Ink

if TYPE_CHECKING:
    from tallystick.log.event import LogEvent
    from tallystick.runs.log.snapshot import Snapshot

_ENDS = {"DONE": "green", "FAILED": "red", "CANCELLED": "yellow"}
_SHOWN_MAX = 200


def clean(text: str) -> str:
    """Return a text that cannot play tricks on a terminal: one line, no control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def summary(snapshot: Snapshot) -> str:
    """Return a page about a run."""
    ink = Ink.for_stream(sys.stdout)
    state = ink(clean(snapshot.run_state), "bold", _ENDS.get(snapshot.run_state, "cyan"))
    lines = [f"run {ink(clean(snapshot.run_id), 'bold')} is {state}"]
    items = snapshot.work_items
    counts = Counter(item.status.value for item in items)
    lines.append(
        "work: " + (", ".join(f"{count} {status}" for status, count in counts.items()) or "none yet")
    )
    rows = [
        (item.work_item_id, item.status.value, item.error.message if item.error else "") for item in items
    ]
    lines += _table(rows[:_SHOWN_MAX], (("bold",), ("green",), ("red",)), ink)
    if snapshot.artifacts_index:
        lines.append("artifacts:")
        known = [
            (name, artifact.sha256[:12], artifact.writer_worker, "stale" if artifact.stale else "")
            for name, artifact in sorted(snapshot.artifacts_index.items())
        ]
        lines += _table(known[:_SHOWN_MAX], ((), ("dim",), ("cyan",), ("yellow",)), ink)
    if snapshot.issues:
        lines.append("issues:")
        found = [
            (issue.severity.value, issue.status.value, issue.error_code, issue.message)
            for issue in snapshot.issues
        ]
        lines += _table(found[:_SHOWN_MAX], (("yellow",), (), ("dim",), ()), ink)
    if snapshot.section_states:
        sections = ", ".join(
            f"{clean(name)} {clean(state)}" for name, state in sorted(snapshot.section_states.items())
        )
        lines.append(f"sections: {sections}")
    return "\n".join(lines)


def listing(runs: Iterable[Mapping[str, str]]) -> str:
    """Return one line per run."""
    ink = Ink.for_stream(sys.stdout)
    rows = [(run["run_id"], run["run_state"]) for run in runs]
    return "\n".join(_table(rows, (("bold",), ("cyan",)), ink)) if rows else "no runs"


def event_line(event: LogEvent) -> str:
    """Return one event as a line for people."""
    payload = msgspec.json.decode(event.payload)
    told = " ".join(f"{key}={value}" for key, value in payload.items() if isinstance(value, (str, int)))
    return clean(f"{event.ts}  {event.type:24}  {told}")


def _table(rows: Sequence[Sequence[str]], styles: Sequence[Sequence[str]], ink: Ink) -> list[str]:
    return aligned([[clean(cell) for cell in row] for row in rows], styles, ink) if rows else []
