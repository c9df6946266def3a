"""The verbs of control, as every SQL store writes them: the names of their crash points, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.store.api import ForkJob, HoldJob, Outcome, ResumeJob
from tallystick.store.forks import fork_job
from tallystick.store.holds import hold_job, resume_job
from tallystick.store.writing import Writing

CONTROL: dict[type, tuple[str, Callable[[Writing, Any], Outcome]]] = {
    HoldJob: ("hold", hold_job),
    ResumeJob: ("resume", resume_job),
    ForkJob: ("fork", fork_job),
}
