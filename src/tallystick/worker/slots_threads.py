"""Slots for sync workflows: one thread each, started when needed."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from tallystick.errors import StoreMisused
from tallystick.worker.batch_scheduling import schedule_as_batch
from tallystick.worker.handler import report_broken, report_closed_over

if TYPE_CHECKING:
    from tallystick.engine.segment import Segment
    from tallystick.store.api import Bundle
    from tallystick.worker.worker import Worker


class ThreadSlots:
    """A pool whose threads keep going as long as each finished job brings the next."""

    def __init__(self, worker: Worker, size: int) -> None:
        """Start nothing yet."""
        self._worker = worker
        self._size = size
        self._waiting: queue.SimpleQueue[Segment | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    def run(self, segment: Segment) -> None:
        """Give a segment to an idle thread, or to a new one."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < self._size:
                thread = threading.Thread(
                    target=self._main, name=f"tally-slot-{len(self._threads) + 1}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        self._waiting.put(segment)

    def stop(self) -> None:
        """Let idle threads end; one that still runs a user's function is left to end by itself."""
        for _ in self._threads:
            self._waiting.put(None)

    def _main(self) -> None:
        while (segment := self._waiting.get()) is not None:
            if self._worker.options.batch_scheduling:
                schedule_as_batch()
            following: Segment | None = segment
            while following is not None:
                following = self._following(following)
            with self._lock:
                self._idle += 1

    def _following(self, segment: Segment) -> Segment | None:
        """Run a segment to its end and return the next one for this thread."""
        try:
            return self._worker.finish(segment, self._run(segment))
        except StoreMisused:
            report_closed_over(segment)
            return None

    def _run(self, segment: Segment) -> Bundle | None:
        try:
            return self._worker.handler_of(segment).run(segment)
        except BaseException:  # noqa: BLE001 (logged with its trace; the job goes on under another lease)
            report_broken(segment)
            return None
