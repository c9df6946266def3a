"""A wait that ends soon does not unwind its workflow: the segment stays in memory, within its lease.

It stays when its own timer is that close, and for a signal only while its worker has nothing better to do.
Nothing is promised by it: what has not come by then suspends the job as any other wait does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tallystick.core.limits import HELD_WAIT_MS_MAX
from tallystick.errors import StoreError
from tallystick.store.api import Wait

if TYPE_CHECKING:
    from tallystick.app.replay.context import WorkflowContext

# How often a segment that stays looks into its inbox because a process has written.
_LOOKS_MAX: Final = 20


def stay(context: WorkflowContext, waits: Sequence[Wait]) -> None:
    """Hold this thread until a wait may be answered, for as long as it is worth it."""
    seconds = _patience_ms(context, waits) / 1000
    worker = context.runtime.worker
    if not seconds or worker is None:
        return
    came = threading.Event()
    with worker.arrivals.listening(context.segment.job_id, came.set):
        for _ in range(_LOOKS_MAX):
            came.clear()
            if _answered(context, waits) or not came.wait(seconds):
                return


async def stay_async(context: WorkflowContext, waits: Sequence[Wait]) -> None:
    """Hold this task until a wait may be answered, for as long as it is worth it."""
    seconds = _patience_ms(context, waits) / 1000
    worker = context.runtime.worker
    if not seconds or worker is None:
        return
    came = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listener() -> None:
        loop.call_soon_threadsafe(came.set)

    with worker.arrivals.listening(context.segment.job_id, listener):
        for _ in range(_LOOKS_MAX):
            came.clear()
            if await asyncio.to_thread(_answered, context, waits):
                return
            try:
                async with asyncio.timeout(seconds):
                    await came.wait()
            except TimeoutError:
                return


def _patience_ms(context: WorkflowContext, waits: Sequence[Wait]) -> int:
    """Return how long it is worth to stay: until the first timer if it is close, else while idle."""
    worker = context.runtime.worker
    if worker is None or context.segment.cancelled:
        return 0
    if any(wait.kind in ("remote", "effect") for wait in waits):
        return 0  # what these wait for comes later, or is there; and directives are to go out now
    due = min((wait.due_at for wait in waits if wait.due_at is not None), default=None)
    if due is not None:
        left = due - context.runtime.clock.boot_ms()
        if left <= HELD_WAIT_MS_MAX:
            return max(0, left)
    signals = any(wait.kind == "wait" for wait in waits)
    return HELD_WAIT_MS_MAX if signals and worker.idle else 0


def _answered(context: WorkflowContext, waits: Sequence[Wait]) -> bool:
    """Tell whether it is time to go on: the job is to end, or a signal has come."""
    segment = context.segment
    if segment.cancelled or segment.lost:
        return True
    names = [wait.name for wait in waits if wait.kind == "wait"]
    try:
        return bool(names) and context.runtime.store.has_signal(segment.job_id, names)
    except StoreError:
        return True  # the next question hears what is wrong with the store
