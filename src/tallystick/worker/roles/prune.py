"""Prune: where finished jobs are kept for a time only, they are removed after it, one batch per turn."""

from __future__ import annotations

from typing import ClassVar

from tallystick.engine.retention import Pruning
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker


class Prune(Role):
    """Removes finished jobs that were kept long enough."""

    name: ClassVar = "prune"

    def __init__(self, worker: Worker, keep_ms: int) -> None:
        """Prepare; the first pass begins at once."""
        self._clock = worker.clock
        self._pruning = Pruning(worker.committer, keep_ms, worker.clock.monotonic())

    def run(self) -> None:
        """Remove the next batch, if a pass is due."""
        self._pruning.tick(self._clock.monotonic())
