"""One thread that keeps a worker honest: renews its leases, reclaims what others lost, and looks for work.

Where finished jobs are kept for a time only, it also removes them after that, a batch at a time.

An idle worker looks at one number that changes when anybody writes, every few milliseconds at first and more
slowly when nothing happens. It never scans a table to find out that there is nothing to do. Where the store
can tell that another process has written, an idle worker looks at that moment.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from tallystick.core.lease import HEARTBEATS_PER_LEASE
from tallystick.engine.retention import Pruning
from tallystick.engine.sweep import cancel_orphans, end_overdue, sweep
from tallystick.store.api import Fence, RenewLeases
from tallystick.worker.worker import Worker

LOOK_SECONDS_MIN: Final = 0.010
LOOK_SECONDS_MAX: Final = 0.100
RETRY_SECONDS: Final = 1.0

_log = logging.getLogger("tallystick.worker")


class Caretaker:
    """The background of one worker."""

    def __init__(self, worker: Worker) -> None:
        """Prepare the thread."""
        self._worker = worker
        self._stop = threading.Event()
        self._roused = threading.Event()
        self._hush: Callable[[], None] = lambda: None
        self._pause = LOOK_SECONDS_MIN
        self._next_due: tuple[int, int] | None = None
        self._unlooked = False
        self._pulse = -1
        lease_seconds = worker.options.lease_ms / 1000
        self._renew_every = lease_seconds / HEARTBEATS_PER_LEASE
        # A lease that ran out is found after at most this long, by whoever looks first.
        self._sweep_every = min(lease_seconds / HEARTBEATS_PER_LEASE, 5.0)
        keep_ms = worker.options.keep_ms
        self._pruning = (
            None if keep_ms is None else Pruning(worker.committer, keep_ms, worker.clock.monotonic())
        )
        self._thread = threading.Thread(target=self._run, name="tally-caretaker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._hush = self._worker.store.listen(self._heard, self._worker.owner)
        self._thread.start()

    def stop(self) -> None:
        """End, after the round that runs now."""
        self._hush()
        self._stop.set()
        self._roused.set()
        self._thread.join()

    def _heard(self) -> None:
        """Begin the next round at once: another process has written. Who is not idle looks when he is."""
        if self._worker.idle:
            self._roused.set()
        else:
            self._worker.poke()

    def _rest(self) -> bool:
        """Pause between two rounds, and tell whether there is to be another."""
        self._roused.wait(self._pause)
        self._roused.clear()
        return not self._stop.is_set()

    def _run(self) -> None:
        clock = self._worker.clock
        renew_at = clock.monotonic() + self._renew_every
        sweep_at = clock.monotonic()
        while self._rest():
            now = clock.monotonic()
            try:
                if now >= renew_at:
                    renew_at = now + self._renew_every
                    self._renew()
                if now >= sweep_at:
                    sweep_at = now + self._sweep_every
                    if self._worker.store.unattended():
                        self._sweep()
                self._look()
                if self._pruning is not None:
                    self._pruning.tick(now)
            except Exception as error:  # noqa: BLE001 (a caretaker that dies takes every lease with it)
                # A store that is away for a while is not the end of the worker: it goes on when it is back.
                _log.warning("caretaker: %s", error, exc_info=True, extra={"action": "caretaker.retry"})
                self._pause = RETRY_SECONDS

    def _sweep(self) -> None:
        worker = self._worker
        if sweep(worker.store, worker.committer, worker.clock):
            worker.poke()
        end_overdue(worker.store, worker.committer, worker.clock)
        cancel_orphans(worker.store, worker.committer, worker.clock)

    def _renew(self) -> None:
        fences = tuple(segment.fence for segment in list(self._worker.running.values()))
        if not fences:
            return
        held = self._worker.committer.call((RenewLeases(fences, self._worker.options.lease_ms),))
        assert isinstance(held, set)
        for fence in set(fences) - held:
            self._lost(fence)

    def _lost(self, fence: Fence) -> None:
        segment = self._worker.running.get(fence.job_id)
        # What ends cannot lose its lease any more: either its end is durable, or that is refused by itself.
        if segment is not None and segment.fence == fence and not segment.over:
            segment.lost = True
            _log.warning(
                "lost the lease of job %s",
                fence.job_id,
                extra={"action": "lease.lost", "job_id": fence.job_id},
            )

    def _notice_requests(self) -> None:
        worker = self._worker
        running = list(worker.running)
        asked = {job_id: (ends, hold) for job_id, ends, hold in worker.store.interrupted(running)}
        for job_id in running:
            ends, hold = asked.get(job_id, (False, None))
            worker.notice_held(job_id, held=hold is not None)
            if ends:
                worker.notice_cancelled(job_id)

    def _look(self) -> None:
        worker = self._worker
        pulse = worker.store.pulse()
        changed, self._pulse = pulse != self._pulse, pulse
        if changed and worker.running:
            self._notice_requests()
            worker.arrivals.stir()
        if worker.claim_failed:
            self._pause = RETRY_SECONDS
            worker.poke()
            return
        # The claim that keeps the worker from being idle may have looked before somebody wrote.
        changed, self._unlooked = changed or self._unlooked, False
        if not worker.idle:
            self._unlooked = changed
            self._pause = LOOK_SECONDS_MAX
            return
        if changed or self._due():
            self._pause = LOOK_SECONDS_MIN
            before = worker.clock.wall_ms()
            worker.poke()
            # What was due before the claim and was not claimed is for workers with other handlers. What
            # became due meanwhile may have been too early for the claim, and must be asked for again.
            next_due = worker.store.next_due(worker.options.queues, before)
            left = 0 if next_due is None else next_due - worker.clock.wall_ms()
            self._next_due = None if next_due is None else (next_due, worker.clock.boot_ms() + left)
        else:
            self._pause = min(self._pause * 1.5, LOOK_SECONDS_MAX)

    def _due(self) -> bool:
        """Tell whether a job may be due: by the wall clock, or by one that nobody can set back."""
        if self._next_due is None:
            return False
        wall_ms, boot_ms = self._next_due
        return self._worker.clock.wall_ms() >= wall_ms or self._worker.clock.boot_ms() >= boot_ms
