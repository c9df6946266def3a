"""A schedule as it is kept: everything that any process needs to make a job of its next tick."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

MISSED_MS: Final = 60_000
"""A tick that is later than this is missed."""

MISSED_MAX: Final = 1_000
"""How many missed ticks are made up for; with more a person decides."""


class Missed(StrEnum):
    """What becomes of ticks that were missed, while no worker ran."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of a tick while the job of the one before it has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    CANCEL_OLD = "cancel_old"


class SchedulePlan(NamedTuple):
    """What a declaration, or a person, decides about a schedule."""

    tenant_id: str
    handler: str
    version: str
    payload: str
    # The parameter that gets the instant of the tick, if the function has one of that name.
    instant_as: str | None
    options: str
    timetable: str
    missed: str
    overlap: str
    jitter_ms: int


class Schedule(NamedTuple):
    """A row of `schedules`. It is changed as a whole, by a process that has seen its revision."""

    schedule_id: str
    tenant_id: str
    handler: str
    version: str
    payload: str
    instant_as: str | None
    options: str
    timetable: str
    missed: str
    overlap: str
    jitter_ms: int
    declared: int
    next_at: int | None
    due_at: int | None
    paused_by: str | None
    hold_reason: str | None
    last_at: int | None
    last_job_id: str | None
    created_at: int
    rev: int
    # Since when its tick waits for the end of the job before it, which is asked to end; `due_at` is then when
    # to look again.
    waits_since: int | None = None

    @property
    def plan(self) -> SchedulePlan:
        """Return what was decided about it."""
        return SchedulePlan._make(getattr(self, name) for name in SchedulePlan._fields)
