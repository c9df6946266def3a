"""Reclaim: attempts whose lease has run out are taken back, so that any worker can go on with their jobs.

It looks a few times per lease, at what `Store.expired` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar, Final

from tallystick.core.lease import HEARTBEATS_PER_LEASE
from tallystick.engine.sweep import sweep
from tallystick.store.api import Fence
from tallystick.worker.refusals import Reasons
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

SWEEP_SECONDS_MAX: Final = 5.0


def sweep_seconds(worker: Worker) -> float:
    """Return after how long a lost lease is found at the latest."""
    return min(worker.options.lease_ms / 1000 / HEARTBEATS_PER_LEASE, SWEEP_SECONDS_MAX)


class ReclaimLeases(Role):
    """Takes back attempts of any worker, this one included."""

    name: ClassVar = "reclaim"

    def __init__(self, worker: Worker, excused: Callable[[], Collection[Fence]]) -> None:
        """Prepare; `excused` are the leases that this worker could not renew though it lives."""
        self._worker = worker
        self._excused = excused
        self._told = Reasons()
        self.every = sweep_seconds(worker)

    def run(self) -> None:
        """Take back what has run out."""
        worker = self._worker
        excused = {*self._excused(), *(segment.fence for segment in list(worker.owed))}
        if sweep(worker.store, worker.committer, excused, self._told.is_new):
            worker.poke()
