"""Pictures of protocol jobs, and of remote steps of workflows, from the rows of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from tallystick.core.pictures import Pictures
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolPicture, ProtocolStep, step_id_of

Row: TypeAlias = tuple[Any, ...]

READS: Final = ("picture_protocols", "picture_protocol_steps", "picture_directives")
"""The statements whose rows make a picture, in the order in which `pictures_of` takes them."""


def pictures_of(
    jobs: Iterable[Row], steps: Iterable[Row], directives: Iterable[Row]
) -> dict[str, ProtocolPicture]:
    """Return the pictures of protocol jobs; steps come in their order."""
    found = {job.job_id: job for job in map(ProtocolJob._make, jobs)}
    parts: dict[str, list[ProtocolStep]] = {job_id: [] for job_id in found}
    for step in map(ProtocolStep._make, steps):
        parts[step.job_id].append(step)
    pending = {row.job_id: row for row in map(OutboxRow._make, directives)}
    return {
        job_id: ProtocolPicture(job, tuple(parts[job_id]), pending.get(job_id))
        for job_id, job in found.items()
    }


HOMES: Final = ("picture_homes", "picture_directives")
"""The statements that are read for jobs with remote steps beside these steps themselves."""


def remote_step(row: Sequence[Any]) -> ProtocolStep:
    """Return a remote step of a workflow from its job, its place and its columns."""
    job_id, dimension, name, occurrence, *about = row
    return ProtocolStep(job_id, step_id_of((dimension, name, occurrence)), *about)


def add_remotes(pictures: Pictures, rows: Iterable[Row]) -> None:
    """Add remote steps of workflows to the pictures of their jobs."""
    for job_id, dimension, name, occurrence, *about in rows:
        place = (dimension, name, occurrence)
        if job_id in pictures:
            pictures[job_id].remotes[place] = remote_step((job_id, *place, *about))


def add_undelivered(pictures: Pictures, rows: Iterable[Row]) -> None:
    """Add steps of protocol jobs to the pictures of these: each has one place."""
    for step in map(ProtocolStep._make, rows):
        if step.job_id in pictures:
            pictures[step.job_id].remotes[0, step.step_id, 1] = step


def add_homes(pictures: Pictures, jobs: Iterable[Row], directives: Iterable[Row]) -> None:
    """Add what directives say of jobs, and what of them is not out."""
    for home in map(ProtocolJob._make, jobs):
        if home.job_id in pictures:
            pictures[home.job_id].home = home
    for row in map(OutboxRow._make, directives):
        if row.job_id in pictures:
            pictures[row.job_id].directives[row.step_id] = row
