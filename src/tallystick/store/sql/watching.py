"""What operators watch, on SQL stores: rows that workers write of themselves, and counts that are bounded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tallystick.core.watching.rows import (
    DEPTH_MAX,
    FORGET_WORKER_MS,
    KEEP_COUNTS_MS,
    Backlog,
    EndedCount,
    LeaveWorker,
    QueueDepth,
    ReportWorker,
    RunningJob,
    WorkerRow,
)
from tallystick.store.writing import OpenTransaction

_MINUTE_MS = 60_000


def report_worker(batch: OpenTransaction, request: ReportWorker) -> None:
    """Note that a worker lives and what it has ended; forget workers and counts of long ago."""
    wall = batch.wall
    *about, ended = request
    batch.run("put_worker", (*about, wall, wall))
    for state, number in ended:
        batch.run("add_ended", (wall // _MINUTE_MS, request.owner, state, number))
    batch.run("trim_workers", (wall - FORGET_WORKER_MS,))
    if ended:
        batch.run("trim_ended", ((wall - KEEP_COUNTS_MS) // _MINUTE_MS,))


def leave_worker(batch: OpenTransaction, request: LeaveWorker) -> None:
    """Forget a worker that has stopped."""
    batch.run("drop_worker", request)


class WatchReads(ABC):
    """What is read for people and for graphs: every read is bounded, and none scans a table of jobs."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def workers(self, limit: int) -> list[WorkerRow]:
        """Return the workers that have reported within a day and did not leave, the one heard last first."""
        return [WorkerRow._make(row) for row in self.rows("workers", (limit,))]

    def ended(self, since_ms: int) -> list[EndedCount]:
        """Return how many jobs workers have ended since an instant, by minute and state."""
        return [EndedCount._make(row) for row in self.rows("ended", (since_ms // _MINUTE_MS,))]

    def running(self, limit: int) -> list[RunningJob]:
        """Return the jobs that workers have, the one that runs longest first."""
        return [RunningJob._make(row) for row in self.rows("running_longest", (limit,))]

    def backlog(self) -> Backlog:
        """Return what waits for workers, for people, for relays and for the clock."""
        now = self.now()
        queues = [
            QueueDepth(queue, min(depth, DEPTH_MAX), oldest_at)
            for (queue,) in self.rows("waiting_queues")
            for depth, oldest_at in self.rows("queue_depth", (queue, now, DEPTH_MAX))
            if depth
        ]
        ((outbox, outbox_at),) = self.rows("outbox_depth", (now, DEPTH_MAX))
        ((tick_at,),) = self.rows("next_tick")
        held = {str(hold): int(number) for hold, number in self.rows("held_counts", (DEPTH_MAX,))}
        return Backlog(now, queues, held, outbox, outbox_at, tick_at)
