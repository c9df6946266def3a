"""Runs: pipelines whose folder is the truth.

Declare a `Pipeline`, give it functions, and `run` it in a folder. Whatever happens to the process, calling
`run` again goes on where the log ends.
"""

from __future__ import annotations

from tallystick.runs.events import IssueStatus, SectionState, Severity
from tallystick.runs.pipeline import Node, Pipeline
from tallystick.runs.snapshot import Artifact, Snapshot, WorkItem, WorkStatus
from tallystick.runs.work import Work

__all__ = [
    "Artifact",
    "IssueStatus",
    "Node",
    "Pipeline",
    "SectionState",
    "Severity",
    "Snapshot",
    "Work",
    "WorkItem",
    "WorkStatus",
]
