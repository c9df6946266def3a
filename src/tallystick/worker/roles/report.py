"""Report: the worker says that it lives, which roles fail, and once per minute how many jobs it has ended."""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
from collections import Counter
from typing import ClassVar, Final

import msgspec

from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.lifecycles import JobState
from tallystick.core.watching.rows import COUNT_MS, REPORT_MS, LeaveWorker, ReportWorker
from tallystick.engine.observe import CancelledHere, JobFinished, Reclaimed
from tallystick.engine.pending_writes import Called
from tallystick.store.api import Outcome
from tallystick.version import VERSION
from tallystick.worker.roles.role import Role
from tallystick.worker.worker import Worker

_log = logging.getLogger("tallystick.worker")

LEAVE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.25
CHANGED_MS: Final = 1_000

_ENDED_BY: Final = {Reclaim.FAIL: JobState.FAILED_FINAL, Reclaim.SETTLE: JobState.CANCELLED}


class ReportLife(Role):
    """Writes the row of its worker, and removes it when the worker has stopped."""

    name: ClassVar = "report"
    rest = REPORT_MS / 1000

    def __init__(self, worker: Worker) -> None:
        """Prepare, and count from now on what ends here."""
        self._worker = worker
        self._lock = threading.Lock()
        self._ended: Counter[str] = Counter()
        self._said_at = -math.inf
        self._failing: dict[str, str] = {}
        self._count_at = worker.clock.monotonic() + COUNT_MS / 1000
        observers = worker.committer.observers
        self._deaf = (
            observers.on(JobFinished, self._finished),
            observers.on(CancelledHere, lambda _end: self._count(JobState.CANCELLED)),
            observers.on(Reclaimed, lambda taken: self._count(_ENDED_BY.get(taken.became))),
        )

    def run(self) -> None:
        """Say that the worker lives; what it has ended goes along once per minute.

        That a role fails, or does so no more, is said within a second or two. A worker that cannot claim
        says so by itself, and is not shown.
        """
        barred = self._worker.refusals.last
        self.rest = LOOK_SECONDS if barred else REPORT_MS / 1000
        now = self._worker.clock.monotonic()
        failing = {role: error for role, error in self._worker.failing.items() if role != self.name}
        pause_ms = REPORT_MS if failing == self._failing else CHANGED_MS
        if barred or now < self._said_at + pause_ms / 1000:
            return
        ended = self._taken() if now >= self._count_at else {}
        try:
            self._worker.committer.call((self._report(ended, failing),))
        except BaseException:
            with self._lock:
                self._ended.update(ended)
            raise
        self._said_at, self._failing = now, failing
        if now >= self._count_at:
            self._count_at = now + COUNT_MS / 1000

    def leave(self) -> None:
        """Write what is left and remove the row; a store that is away delays a stop by a second."""
        for stop in self._deaf:
            stop()
        last = (self._report(self._taken(), {}), LeaveWorker(self._worker.owner))
        left = threading.Event()

        def settle(outcome: Outcome | BaseException) -> None:
            left.set()
            if isinstance(outcome, BaseException):
                about = {"action": "worker.leave_failed"}
                _log.warning("worker: it is shown for a day after it has stopped, %s", outcome, extra=about)

        self._worker.committer.put([Called(last, settle)])
        left.wait(LEAVE_SECONDS)

    def _finished(self, end: JobFinished) -> None:
        with self._lock:
            self._ended[end.state] += 1

    def _count(self, state: str | None) -> None:
        if state is not None:
            with self._lock:
                self._ended[state] += 1

    def _taken(self) -> dict[str, int]:
        with self._lock:
            ended, self._ended = dict(self._ended), Counter()
        return ended

    def _report(self, ended: dict[str, int], failing: dict[str, str]) -> ReportWorker:
        worker = self._worker
        return ReportWorker(
            worker.owner,
            socket.gethostname(),
            os.getpid(),
            VERSION,
            msgspec.json.encode(worker.options.queues).decode(),
            worker.options.concurrency,
            len(worker.running),
            msgspec.json.encode(failing).decode(),
            tuple(sorted(ended.items())),
        )
