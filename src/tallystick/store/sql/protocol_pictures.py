"""Pictures of protocol jobs from the rows of three statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolPicture, ProtocolStep

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
