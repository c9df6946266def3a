"""Effects that rest: when a job that is put away for another reason goes on because of them."""

from __future__ import annotations

from typing import Final

from tallystick.core.effects.rows import Phase
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import Now, Picture

OVERDUE_MS: Final = 60_000
"""After what time a job goes on whose effect may be called again already, and was not by its segment."""


def rests_until(picture: Picture, now: Now) -> int | None:
    """Return when the first effect of a job may be called again; None if none rests, or the job is to end."""
    if picture.job.state == JobState.CANCELLING:
        return None
    rests = [row.due_at for row, _live in picture.open_effects.values() if row.phase == Phase.RESTING]
    return min((_after(due_at, now) for due_at in rests if due_at is not None), default=None)


def _after(due_at: int, now: Now) -> int:
    return due_at if due_at > now.wall else now.wall + OVERDUE_MS
