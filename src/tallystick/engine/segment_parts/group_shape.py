"""How a group of children is to be opened, and what closes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tallystick.core.chain import Chain
from tallystick.engine.submission import Submission, new_job
from tallystick.store.api import Fact, Group, NewJob


class GroupShape(NamedTuple):
    """How many children a group has, when it closes, and whether the first failure is enough."""

    total: int
    threshold: int
    fail_fast: bool

    @property
    def takes_all(self) -> bool:
        """Tell whether only the end of the last child closes it."""
        return not self.threshold and not self.fail_fast


def newborn(
    parent: str, group: Group, submissions: Sequence[Submission], start: int, now: int
) -> tuple[tuple[NewJob, Fact], ...]:
    """Return children from place `start` on, each with its first fact, which says more when it is born."""
    children = []
    for index, submission in enumerate(submissions, start):
        job = new_job(submission, group.child_id(parent, index), now, parent, detached=submission.detached)
        children.append((job, Fact(Chain(job.job_id), "submit", now, 0, "")))
    return tuple(children)
