"""One thread that keeps a worker honest: renews its leases, reclaims what others lost, and looks for work.

Where finished jobs are kept for a time only, it also removes them after that, a batch at a time. What one
part of a round meets keeps no other part from its turn.

A job whose end the store did not take is given back here as soon as the store takes that. It is not charged,
nor is one whose lease ran out while the store could not be written: its worker lives.

An idle worker looks at one number that changes when anybody writes, every few milliseconds at first and more
slowly when nothing happens. It never scans a table to find out that there is nothing to do. Where the store
can tell that another process has written, an idle worker looks at that moment.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Final

from tallystick.core.lease import HEARTBEATS_PER_LEASE
from tallystick.engine.refusals import turn_down
from tallystick.engine.retention import Pruning
from tallystick.engine.sweep import cancel_orphans, end_overdue, sweep
from tallystick.errors import StaleLease, StoreError
from tallystick.store.api import Fence, RenewLeases
from tallystick.worker.refusals import Reasons
from tallystick.worker.worker import Worker

LOOK_SECONDS_MIN: Final = 0.010
LOOK_SECONDS_MAX: Final = 0.100
RETRY_SECONDS: Final = 0.5

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
        # Leases that the store did not let us renew; if they have run out since, no job is to blame.
        self._excused: set[Fence] = set()
        self._troubles: dict[str, Reasons] = defaultdict(Reasons)
        lease_seconds = worker.options.lease_ms / 1000
        self._renew_every = lease_seconds / HEARTBEATS_PER_LEASE
        self._retry = min(RETRY_SECONDS, self._renew_every)
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
        give_back_at = sweep_at = clock.monotonic()
        renew_at = give_back_at + self._renew_every
        while self._rest():
            now = clock.monotonic()
            if self._worker.owed and now >= give_back_at and not self._did("give back", self._give_back):
                give_back_at = now + self._retry
            if now >= renew_at:
                renewed = self._did("renew", self._renew)
                renew_at = now + (self._renew_every if renewed else self._retry)
            if now >= sweep_at:
                sweep_at = now + self._sweep_every
                self._did("sweep", self._sweep)
            if not self._did("look", self._look):
                self._pause = self._retry
            if self._pruning is not None:
                self._did("prune", partial(self._pruning.tick, now))

    def _did(self, part: str, act: Callable[[], object]) -> bool:
        """Do one part of a round, and tell whether it went well; if not, say so once for each reason."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 (a caretaker that dies takes every lease with it)
            # A store that is away for a while is not the end of the worker: it goes on when it is back.
            if self._troubles[part].is_new(error):
                _log.warning(
                    "caretaker: %s: %s", part, error, exc_info=True, extra={"action": "caretaker.retry"}
                )
            return False
        self._troubles[part].forget()
        return True

    def _sweep(self) -> None:
        worker = self._worker
        if worker.store.unattended():
            where = (worker.store, worker.committer)
            self._did("reclaim", self._reclaim)
            self._did("end what is overdue", partial(end_overdue, *where))
            self._did("cancel orphans", partial(cancel_orphans, *where))

    def _reclaim(self) -> None:
        worker = self._worker
        excused = self._excused | {segment.fence for segment in list(worker.owed)}
        if sweep(worker.store, worker.committer, excused, self._troubles["reclaim a job"].is_new):
            worker.poke()

    def _give_back(self) -> None:
        """Give back every job whose end the store did not take, charged to nobody; its lease may be over.

        One whose end the books refuse is held instead. If they refuse that too, it is left to its lease.
        """
        worker = self._worker
        owed = list(worker.owed)
        outcomes = worker.committer.call_all(
            [
                segment.given_back()
                if segment.turned_down is None
                else turn_down(segment, segment.turned_down)
                for segment in owed
            ]
        )
        told = list(zip(owed, outcomes, strict=True))
        for segment in [segment for segment, outcome in told if outcome is None]:
            worker.given_back(segment)
            worker.poke()
        over = [segment for segment, outcome in told if isinstance(outcome, StaleLease)]
        if over:
            self._reclaim()
        for segment in over:
            worker.given_back(segment)
        for segment, outcome in told:
            if isinstance(outcome, StoreError):
                raise outcome
            if isinstance(outcome, BaseException) and not isinstance(outcome, StaleLease):
                worker.given_back(segment)
                _log.error(
                    "job %s: left to its lease, %s",
                    segment.job_id,
                    outcome,
                    extra={"action": "segment.left", "job_id": segment.job_id},
                )

    def _renew(self) -> None:
        worker = self._worker
        fences = {segment.fence for segment in list(worker.running.values())}
        if not fences:
            return
        begun = worker.clock.monotonic()
        before, self._excused = self._excused, self._excused | fences
        held = worker.committer.call((RenewLeases(tuple(fences), worker.options.lease_ms),))
        assert isinstance(held, set)
        lost = fences - held
        in_time = worker.clock.monotonic() - begun < self._renew_every
        self._excused = before & lost if in_time else lost
        for fence in lost:
            self._lost(fence)
        if self._excused:
            self._reclaim()

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
        if pulse != self._pulse:
            if worker.running:
                self._notice_requests()
                worker.arrivals.stir()
            # Kept until a round has looked: a claim on its way may have looked before somebody wrote.
            self._pulse, self._unlooked = pulse, True
        if worker.claim_failed:
            self._pause = self._retry
            worker.poke()
            return
        if not worker.idle:
            self._pause = LOOK_SECONDS_MAX
            return
        if self._unlooked or self._due():
            self._pause = LOOK_SECONDS_MIN
            before = worker.clock.wall_ms()
            worker.poke()
            # What was due before the claim and was not claimed is for workers with other handlers. What
            # became due meanwhile may have been too early for the claim, and must be asked for again.
            next_due = worker.store.next_due(worker.options.queues, before)
            left = 0 if next_due is None else next_due - worker.clock.wall_ms()
            self._next_due = None if next_due is None else (next_due, worker.clock.boot_ms() + left)
            self._unlooked = False
        else:
            self._pause = min(self._pause * 1.5, LOOK_SECONDS_MAX)

    def _due(self) -> bool:
        """Tell whether a job may be due: by the wall clock, or by one that nobody can set back."""
        if self._next_due is None:
            return False
        wall_ms, boot_ms = self._next_due
        return self._worker.clock.wall_ms() >= wall_ms or self._worker.clock.boot_ms() >= boot_ms
