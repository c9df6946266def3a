"""Runs: pipelines that keep their whole state in a folder of files.

Declare a `Pipeline`, give it functions, and `run` it in a folder. Whatever happens to the process, calling
`run` again goes on where the log ends.
"""

from __future__ import annotations

from tallystick.runs.definition.pipeline import Node, Pipeline
from tallystick.runs.log.events import IssueStatus, SectionState, Severity
from tallystick.runs.log.snapshot import Artifact, Snapshot, WorkItem, WorkStatus
from tallystick.runs.workers.work import Work

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
