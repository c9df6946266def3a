"""Look: find out that there may be work, and let free slots claim it.

An idle worker asks for one number that changes with every write (`Store.pulse`), every few milliseconds at
first and more slowly when nothing happens, and for the instant at which the next job becomes due
(`Store.next_due`). It never scans a table to learn that there is nothing to do. Where the store can tell that
another process has written, the worker looks at that moment.

A queue with a rate is looked at when its next token is there. That instant is known when the claim before it
is answered, so the worker asks for it then, and not while that claim is on its way.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from tallystick.store.api import Queues
from tallystick.worker.notices import notice_ended, notice_held
from tallystick.worker.roles.role import Role
from tallystick.worker.timer import Timer
from tallystick.worker.worker import Worker

LOOK_SECONDS_MIN: Final = 0.010
LOOK_SECONDS_MAX: Final = 0.100
LOOK_SECONDS_LEAST: Final = 0.001
# Clocks are read in whole milliseconds: close to an instant that matters it reads them more often.
LOOK_SECONDS_NEAR: Final = 0.0003
# How often it asks which queues have limits.
NAMES_SECONDS: Final = 1.0


class LookForWork(Role):
    """Notices writes of others: new work, signals for jobs that run here, requests to stop them."""

    name: ClassVar = "look"

    def __init__(self, worker: Worker, retry: float) -> None:
        """Prepare; after a claim that failed the next is made after `retry` seconds."""
        self._worker = worker
        self._retry = retry
        # When the next job becomes due.
        self._timer = Timer(worker.clock)
        self._pulse = -1
        self._unlooked = False
        self._queues = worker.store if isinstance(worker.store, Queues) else None
        # The queues of this worker that have limits, and when it asked for them.
        self._names: frozenset[str] = frozenset()
        self._learned_at = -NAMES_SECONDS
        # When the last claim was asked for, by both clocks, if the next instant is still to be learned.
        self._asked: tuple[int, float] | None = None
        self.rest = LOOK_SECONDS_MIN

    def run(self) -> None:
        """Look once, and decide when to look again."""
        worker = self._worker
        pulse = worker.store.pulse()
        if pulse != self._pulse:
            if worker.running:
                self._notice_requests()
                for job_id in list(worker.running):
                    worker.notify(job_id)
            # Kept until a round has looked: a claim on its way may have read before the write.
            self._pulse, self._unlooked = pulse, True
        if worker.claim_failed:
            self.rest = self._retry
            worker.poke()
        elif not worker.idle:
            # A claim on its way is soon over, and the next token may be there by then.
            self.rest = min(2 * self.rest, LOOK_SECONDS_MAX) if self._names else LOOK_SECONDS_MAX
        elif self._asked is not None:
            self._learn(*self._asked)
        elif self._unlooked or self._timer.is_over():
            self._look()
        else:
            self.rest = self._until(min(self.rest * 1.5, LOOK_SECONDS_MAX))

    def _look(self) -> None:
        """Let free slots claim, and decide when to look though nothing is written."""
        worker = self._worker
        before = (worker.clock.wall_ms(), worker.clock.monotonic())
        worker.poke()
        if self._limited():
            self._timer.set(None)
            self._asked, self.rest = before, LOOK_SECONDS_LEAST
        else:
            self._learn(*before)
        self._unlooked = False

    def _learn(self, before: int, asked: float) -> None:
        """Set the timer to when a job is due, or a limit lets one begin.

        What was due before the claim and was not claimed is for workers with other handlers. What became due
        meanwhile, a job or a token, may have been too early for the claim, and must be asked for again.
        """
        worker = self._worker
        at = worker.store.next_due(worker.options.queues, before)
        if self._queues is not None and (names := self._limited()):
            now, ago = worker.clock.wall_ms(), worker.clock.monotonic() - asked
            rest = self._queues.rest_of(names, asked_ms=math.ceil(ago * 1_000) + 1)
            at = min((each for each in (at, None if rest is None else now + rest) if each), default=None)
        self._timer.set(at)
        self._asked = None
        self.rest = self._until(LOOK_SECONDS_MIN)

    def _until(self, rest: float) -> float:
        """Return how long to rest, and not beyond the instant at which something is due."""
        return min(rest, max(self._timer.left - LOOK_SECONDS_LEAST, LOOK_SECONDS_NEAR))

    def _limited(self) -> frozenset[str]:
        """Return the queues of this worker that have limits."""
        worker = self._worker
        now = worker.clock.monotonic()
        if self._queues is not None:
            if now - self._learned_at >= NAMES_SECONDS:
                self._learned_at = now
                worker.limited = frozenset(self._queues.limited())
            self._names = worker.limited.intersection(worker.options.queues)
        return self._names

    def _notice_requests(self) -> None:
        """Tell running segments that their job is to end or to stop."""
        worker = self._worker
        running = list(worker.running)
        found = {each.job_id: each for each in worker.store.interrupted(running)}
        for job_id in running:
            each = found.get(job_id)
            notice_held(worker, job_id, held=each is not None and each.hold is not None)
            if each is not None and (each.asked or each.ended):
                notice_ended(worker, job_id, asked=not each.ended)
