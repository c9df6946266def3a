"""Group commit: everything that a process writes shares fsyncs.

Callers hand over bundles and wait. While one flush is on its way the next batch gathers; there is no timer,
so a lone caller pays for its own flush and nothing else. There is one hand-off a batch in each direction:
the whole batch of an event loop arrives in one call and is released by one wake-up.

If a flush fails, everybody in it gets the error: nothing of it is durable, and none of it is the job's
fault.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tallystick.core.limits import FLUSH_BUNDLES_MAX
from tallystick.errors import StoreError, StoreMisused, TallyError
from tallystick.store.api import Bundle, Outcome, Store

_log = logging.getLogger("tallystick.engine")

# How long the committer waits for callers that it has just released and that are on their way back.
_RETURNING_SECONDS = 0.001


class Waiter(Protocol):
    """Somebody who wants to know what became of a bundle."""

    def release(self, outcome: Outcome | BaseException) -> None:
        """Take the outcome; called in the committer's thread, in the order of the batch."""
        ...


class Blocked:
    """A thread that waits."""

    __slots__ = ("_lock", "outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.outcome: Outcome | BaseException = None

    def release(self, outcome: Outcome | BaseException) -> None:
        """Wake the thread."""
        self.outcome = outcome
        self._lock.release()

    def wait(self) -> Outcome:
        """Block until the outcome is known; raise it if it is a refusal."""
        self._lock.acquire()
        return settle(self.outcome)


class Called:
    """A function that wants the outcome; it runs in the committer's thread and must not block."""

    __slots__ = ("release",)

    def __init__(self, function: Callable[[Outcome | BaseException], None]) -> None:
        self.release = function


class LoopLane:
    """All the tasks of one event loop: gathered into one hand-off, released by one wake-up."""

    def __init__(self, committer: Committer, loop: asyncio.AbstractEventLoop) -> None:
        self._committer = committer
        self._loop = loop
        self._pending: list[tuple[Bundle, Waiter]] = []
        self._released: list[tuple[asyncio.Future[Outcome], Outcome | BaseException]] = []
        self._last_calls: dict[Callable[[], None], None] = {}

    def before_hand_over(self, function: Callable[[], None]) -> None:
        """Call this once, just before the batch that is gathering now leaves: it may add to it."""
        self._last_calls[function] = None

    def call(self, bundle: Bundle) -> asyncio.Future[Outcome]:
        """Return a future of the outcome; call it in the loop's own thread."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.put(bundle, Called(lambda outcome: self._released.append((future, outcome))))
        return future

    def put(self, bundle: Bundle, waiter: Waiter) -> None:
        """Add to the batch that leaves when the loop has run everything that is ready now."""
        if not self._pending:
            self._loop.call_soon(self._hand_over)
        self._pending.append((bundle, waiter))

    def flushed(self) -> None:
        """Pass on everything released by the last flush; called in the committer's thread."""
        released, self._released = self._released, []
        if released:
            # A loop that is closed has nobody left who could be told.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_resolve, released)

    def _hand_over(self) -> None:
        last_calls, self._last_calls = self._last_calls, {}
        for function in last_calls:
            function()
        pending, self._pending = self._pending, []
        self._committer.put(pending)


class Committer:
    """The one thread that writes."""

    def __init__(self, store: Store, *, after_flush: Callable[[], None] = lambda: None) -> None:
        """Start the thread; `after_flush` runs in it between two flushes."""
        self._store = store
        self._after_flush = after_flush
        self._queue: deque[tuple[Bundle, Waiter]] = deque()
        self._lanes: dict[asyncio.AbstractEventLoop, LoopLane] = {}
        self._changed = threading.Condition(threading.Lock())
        self._closing = False
        self._pid = os.getpid()
        self._returning = 0
        self.flushes = 0
        self.bundles = 0
        self._thread = threading.Thread(target=self._run, name="tally-committer", daemon=True)
        self._thread.start()

    def put(self, items: Sequence[tuple[Bundle, Waiter]]) -> None:
        """Queue bundles; their waiters are released when they are durable or refused."""
        if os.getpid() != self._pid:
            raise StoreMisused("this Tally was used before a fork; make one in the child process instead")
        with self._changed:
            if self._closing:
                raise StoreMisused("this Tally is closed")
            self._queue.extend(items)
            if len(self._queue) >= self._returning:
                self._changed.notify()

    def begin(self, bundle: Bundle) -> Blocked:
        """Queue a bundle and return the waiter for its outcome."""
        waiter = Blocked()
        self.put([(bundle, waiter)])
        return waiter

    def call(self, bundle: Bundle) -> Outcome:
        """Make a bundle durable and return its outcome, blocking this thread."""
        if threading.current_thread() is self._thread:
            raise StoreMisused("the committer cannot wait for itself")
        return self.begin(bundle).wait()

    def call_all(self, bundles: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Make bundles durable in one flush where possible; refusals are returned, not raised."""
        waiters = [Blocked() for _ in bundles]
        self.put(list(zip(bundles, waiters, strict=True)))
        outcomes: list[Outcome | BaseException] = []
        for waiter in waiters:
            try:
                outcomes.append(waiter.wait())
            except TallyError as error:
                outcomes.append(error)
        return outcomes

    def lane(self, loop: asyncio.AbstractEventLoop) -> LoopLane:
        """Return the lane of an event loop."""
        lane = self._lanes.get(loop)
        if lane is None:
            lane = self._lanes[loop] = LoopLane(self, loop)
        return lane

    def close(self) -> None:
        """Flush what is queued and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._gather():
            bundles = [bundle for bundle, _waiter in batch]
            try:
                outcomes: Sequence[Outcome | BaseException] = self._store.apply(bundles)
            except BaseException as error:  # noqa: BLE001 (whatever it is, every waiter must learn of it)
                failure = (
                    error if isinstance(error, TallyError) else StoreError(f"the flush failed: {error!r}")
                )
                failure.__cause__ = None if failure is error else error
                outcomes = [failure] * len(batch)
            self.flushes += 1
            self.bundles += len(batch)
            self._returning = len(batch)
            for (_bundle, waiter), outcome in zip(batch, outcomes, strict=True):
                self._guarded(waiter.release, outcome)
            for lane in list(self._lanes.values()):
                lane.flushed()
            self._guarded(self._after_flush)

    @staticmethod
    def _guarded(function: Callable[..., None], *arguments: object) -> None:
        """Call somebody who must not take the committer down with him."""
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001 (logged with its trace; everybody else still waits)
            _log.exception("committer: a waiter failed", extra={"action": "committer.waiter_failed"})

    def _gather(self) -> list[tuple[Bundle, Waiter]]:
        """Take what is queued; wait first for those who were just released, if they are on their way back."""
        with self._changed:
            while not self._queue:
                if self._closing:
                    return []
                self._returning = min(self._returning, 1)
                self._changed.wait()
            while len(self._queue) < self._returning and not self._closing:
                before = len(self._queue)
                self._changed.wait(_RETURNING_SECONDS)
                if len(self._queue) == before:
                    break
            self._returning = 0
            return [self._queue.popleft() for _ in range(min(len(self._queue), FLUSH_BUNDLES_MAX))]


def settle(outcome: Outcome | BaseException) -> Outcome:
    """Return an outcome, or raise it if it is a refusal."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _resolve(released: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in released:
        if future.done():
            continue  # its task was cancelled; what it wrote is durable all the same
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
