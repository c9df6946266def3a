"""Effects in the pictures of their jobs, from the rows of statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tallystick.core.effects.rows import EffectRow, OpenEffect, Waiter
from tallystick.core.pictures import Activity, JobFacts, Lease, Picture, Pictures

_ACTIVITY: Final = len(Activity._fields)
_JOB: Final = len(JobFacts._fields)


def add_effects(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add effects that are open to the pictures of their jobs, each with whether its lease is live."""
    for *about, live in rows:
        row = EffectRow._make(about)
        effects = pictures[row.job_id].effects if row.job_id in pictures else None
        if effects is not None:
            effects[row.place] = OpenEffect(row, bool(live))


def add_keys(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add the holders of the keys that were asked for."""
    for about in rows:
        row = EffectRow._make(about)
        pictures.occupied[row.occupies] = row


def add_lost(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add which jobs wait for a key: what an attempt that has lost it names, the job, the step."""
    for guid, job_id, unit in rows:
        pictures.waiters.setdefault(guid, set()).add(Waiter(job_id, unit))


def add_waiters(pictures: Pictures, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add the jobs that wait for effects of others, each with the step at which it does."""
    for guid, unit, *about in rows:
        activity, job = Activity._make(about[:_ACTIVITY]), JobFacts._make(about[_ACTIVITY:][:_JOB])
        attempt, lease_id, status, live, driver = about[_ACTIVITY + _JOB :]
        if job.job_id not in pictures:
            lease = None if attempt is None else Lease(attempt, lease_id, status, bool(live), driver)
            pictures[job.job_id] = Picture(job, lease)
        pictures[job.job_id].activities[activity.place] = activity
        pictures.waiters.setdefault(guid, set()).add(Waiter(job.job_id, unit))
