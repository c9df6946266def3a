"""Slots for async workflows: tasks on one event loop that the worker owns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tallystick.engine.committer import LoopLane
from tallystick.engine.pending_writes import Handed
from tallystick.worker.handler import Handler, report_broken

if TYPE_CHECKING:
    from tallystick.engine.segment import Segment
    from tallystick.store.api import Bundle, Outcome
    from tallystick.worker.worker import Worker


# How long the end of the loop may take when nothing runs on it any more.
_END_SECONDS: Final = 5.0
# The same when something may still run on it, and may well block it.
_LEAVE_SECONDS: Final = 0.1


class AsyncSlots:
    """The loop, its tasks, and one claim per tick for all the slots that became free in it."""

    def __init__(self, worker: Worker, given: asyncio.AbstractEventLoop | None = None) -> None:
        """Start nothing yet; a loop that is given is used, and is its owner's to end."""
        self._worker = worker
        self._given = given
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lane: LoopLane | None = None
        self._thread: threading.Thread | None = None
        self._tasks: dict[Segment, asyncio.Task[None]] = {}
        self._wanted = 0

    def start(self) -> None:
        """Take the loop that was given, or start one in a thread of its own."""
        self._loop = self._given or asyncio.new_event_loop()
        self._lane = self._worker.committer.lane(self._loop)
        if self._given is not None:
            return
        self._thread = threading.Thread(target=self._main, name="tally-loop", daemon=True)
        self._thread.start()

    def run(self, segments: list[tuple[Segment, Handler]]) -> None:
        """Start a task for each segment with its code; callable from any thread."""
        if self._loop is None:
            self.start()
        assert self._loop is not None
        if threading.current_thread() is self._thread:
            self._start(segments)
        else:
            self._loop.call_soon_threadsafe(self._start, segments)

    def call(self, function: Callable[[], Coroutine[Any, Any, object]]) -> object:
        """Run a coroutine function on the loop and return what it returns."""
        if self._loop is None:
            self.start()
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(function(), self._loop).result()

    def cancel(self, segment: Segment | None = None) -> None:
        """Let the task of a segment that is lost unwind, or every one; callable from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and nothing runs on it any more
                self._loop.call_soon_threadsafe(self._cancel, segment)

    def _cancel(self, only: Segment | None) -> None:
        for segment, task in self._tasks.items():
            if only is None or segment is only:
                # So that its workflow knows that it is not its own code that cancels it.
                segment.lost = True
                task.cancel()

    def stop(self, *, all_ended: bool = True) -> None:
        """End the loop; one that a user's function may block is left to end by itself."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_SECONDS if all_ended else _LEAVE_SECONDS)

    def _main(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def _start(self, segments: list[tuple[Segment, Handler]]) -> None:
        assert self._loop is not None
        assert self._lane is not None
        for segment, handler in segments:
            # Not by the loop: what it makes tasks with counts those that a workflow begins, and this is ours.
            self._tasks[segment] = asyncio.Task(
                self._run(segment, handler, self._lane), loop=self._loop, name=segment.job_id
            )

    async def _run(self, segment: Segment, handler: Handler, lane: LoopLane) -> None:
        try:
            bundle: Bundle | None = None
            try:
                bundle = await handler.run_async(segment, lane)
            except BaseException:  # noqa: BLE001 (logged with its trace; the job goes on under another lease)
                report_broken(segment)
            self._worker.left(segment)
            handed, segment.handed = segment.handed, None
            if type(handed) is not Handed:
                self._finish(segment, bundle)
            elif bundle is not None and self._worker.committer.extend(handed, bundle):
                # The last step and the ending share a flush.
                handed.tell(partial(self._worker.ended, segment, bundle))
                self._go_on(segment, bundle)
            else:
                await self._finish_after(handed, segment, bundle)
        finally:
            del self._tasks[segment]

    async def _finish_after(self, handed: Handed, segment: Segment, bundle: Bundle | None) -> None:
        """Hand over the ending when the last step, which is on its way already, is durable."""
        refusal = await handed.settled()
        if refusal is None:
            self._finish(segment, bundle)
        else:
            self._worker.ended(segment, None, refusal)
            self._worker.free()

    def _finish(self, segment: Segment, bundle: Bundle | None) -> None:
        """Hand over the ending, and with it one claim for all slots that end in this tick."""
        assert self._lane is not None
        if bundle is None:
            self._worker.ended(segment, None, None)
            self._worker.free()
        else:
            self._lane.put(bundle, partial(self._worker.ended, segment, bundle))
            self._go_on(segment, bundle)

    def _go_on(self, segment: Segment, bundle: Bundle) -> None:
        """Let this slot ask for its next job in the flush that is about to leave."""
        assert self._lane is not None
        if self._worker.asks_after(segment, bundle):
            if not self._wanted:
                self._lane.before_hand_over(self._claim)
            self._wanted += 1
        else:
            self._worker.free()

    def _claim(self) -> None:
        assert self._lane is not None
        slots, self._wanted = self._wanted, 0
        worker = self._worker
        look = worker.look_on(slots)
        if look is None:
            for _ in range(slots):
                worker.free()
            return

        def claimed(outcome: Outcome | BaseException) -> None:
            worker.launch(worker.answered(look, outcome))

        self._lane.put((worker.claim(look),), claimed)
