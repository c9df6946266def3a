"""Prune: what is kept for a time only is removed after it, a batch per turn: finished jobs, ended effects."""

from __future__ import annotations

from typing import ClassVar

from tallystick.engine.retention import Pruning, PruningEffects
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker


class Prune(Role):
    """Removes finished jobs, and keys of effects, that were kept long enough."""

    name: ClassVar = "prune"

    def __init__(self, worker: Worker, keep_ms: int | None, keep_effects_ms: int | None) -> None:
        """Prepare; the first pass begins at once."""
        self._clock = worker.clock
        about = (worker.committer, worker.clock.monotonic())
        self._prunings: list[Pruning | PruningEffects] = []
        if keep_ms is not None:
            self._prunings.append(Pruning(about[0], keep_ms, about[1]))
        if keep_effects_ms is not None:
            self._prunings.append(PruningEffects(about[0], keep_effects_ms, about[1]))

    def run(self) -> None:
        """Remove the next batch of each, if a pass is due."""
        for pruning in self._prunings:
            pruning.tick(self._clock.monotonic())
