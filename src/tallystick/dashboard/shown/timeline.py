"""A job over time: its attempts, steps, waits and children as bars between its beginning and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tallystick.core.audit.book import AttemptRow
from tallystick.core.remote.listing import StepRow
from tallystick.store.api import JobRow

WIDTH: Final = 1000
_NARROWEST: Final = 3


class Bar(NamedTuple):
    """One line: what it is, from where to where its bar goes, and how long it took."""

    label: str
    kind: str
    state: str
    x: int
    width: int
    began: int
    took: int
    is_open: bool
    href: str = ""


class Timeline(NamedTuple):
    """A page of lines, and the instants at which the whole begins and ends."""

    bars: list[Bar]
    began: int
    until: int


def timeline(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    steps: Sequence[StepRow],
    children: Sequence[JobRow],
    now: int,
) -> Timeline:
    """Return lines of a job in the order in which they began."""
    began, until = row.created_at, max(row.completed_at or now, row.created_at + 1)
    found: list[tuple[int, int | None, str, str, str, str]] = []
    found += [
        (each.started_at, each.finished_at, f"attempt {each.attempt}", "attempt", each.status, "")
        for each in attempts
        if each.started_at is not None
    ]
    found += [
        (each.created_at, each.completed_at, _named(each), each.kind, each.state, "")
        for each in steps
        if each.created_at is not None
    ]
    found += [
        (each.created_at, each.completed_at, each.handler, "child", each.state, each.job_id)
        for each in children
    ]
    found.sort(key=lambda each: (each[0], each[3] != "attempt"))
    return Timeline([_bar(*each, began, until) for each in found], began, until)


def _bar(
    start: int, end: int | None, label: str, kind: str, state: str, href: str, began: int, until: int
) -> Bar:
    last = until if end is None else end
    x = _place(start, began, until)
    width = max(_NARROWEST, _place(last, began, until) - x)
    return Bar(
        label, kind, state, min(x, WIDTH - _NARROWEST), width, start, max(0, last - start), end is None, href
    )


def _place(at: int, began: int, until: int) -> int:
    """Return where an instant stands on a line.

    >>> _place(5, 0, 10), _place(-1, 0, 10), _place(11, 0, 10)
    (500, 0, 1000)
    """
    return max(0, min(WIDTH, (at - began) * WIDTH // (until - began)))


def _named(step: StepRow) -> str:
    name = step.name if step.occurrence == 1 else f"{step.name}#{step.occurrence}"
    return name if step.dimension == 0 else f"{name} (turn {step.dimension + 1})"
