"""Renew: every lease of a running job gets its full length again, several times per lease.

It has a loop of its own, so that no other role costs a lease. One statement renews all leases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ClassVar

from tallystick.core.lease import HEARTBEATS_PER_LEASE
from tallystick.engine.observe import Renewed
from tallystick.store.api import Fence, ManyWriters, RenewLeases
from tallystick.worker.notices import lose
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

_log = logging.getLogger("tallystick.worker")


class Renew(Role):
    """Renews the leases of one worker, and knows which of them the store did not let it renew."""

    name: ClassVar = "renew"

    def __init__(self, worker: Worker, on_late: Callable[[], None] = lambda: None) -> None:
        """Prepare; `on_late` is called when a lease may have run out though this worker lives."""
        self._worker = worker
        self._on_late = on_late
        self.rest = worker.options.lease_ms / 1000 / HEARTBEATS_PER_LEASE
        # Leases that the store did not let us renew; if they have run out since, no job is to blame.
        self.excused: set[Fence] = set()

    def run(self) -> None:
        """Renew all leases, and tell the segments that have lost theirs."""
        worker = self._worker
        fences = {segment.fence for segment in list(worker.running.values())}
        if not fences:
            return
        begun = worker.clock.monotonic()
        before, self.excused = self.excused, self.excused | fences
        held = self._renewed(fences)
        lost = fences - held
        took = worker.clock.monotonic() - begun
        in_time = took < self.rest
        worker.committer.observers.tell(Renewed(len(held), took))
        self.excused = before & lost if in_time else lost
        for fence in lost:
            self._lost(fence)
        if self.excused:
            self._on_late()

    def _renewed(self, fences: set[Fence]) -> set[Fence]:
        """Renew and return the leases that are held now."""
        worker = self._worker
        renewal = (RenewLeases(tuple(fences), worker.options.lease_ms),)
        if isinstance(worker.store, ManyWriters):
            # Beside the flushes: a flush may wait for a lock that another transaction holds.
            (held,) = worker.store.apply([renewal])
        else:
            held = worker.committer.call(renewal)
        assert isinstance(held, set)
        return held

    def _lost(self, fence: Fence) -> None:
        segment = self._worker.running.get(fence.job_id)
        # It is told, and logged, once.
        if segment is not None and segment.fence == fence and lose(self._worker, segment):
            about = {"action": "lease.lost", "job_id": fence.job_id}
            _log.warning("lost the lease of job %s", fence.job_id, extra=about)
