"""Group commit: everything that a process writes shares fsyncs.

Callers hand over bundles and wait. While one flush is on its way the next batch gathers; there is no timer,
so a lone caller pays for its own flush and nothing else. There is one hand-off per batch in each direction:
the whole batch of an event loop arrives in one call and is released by one wake-up.

If a flush fails, every bundle in it gets the error: nothing of it is durable, and none of it is the job's
fault.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tallystick.core.limits import FLUSH_BUNDLES_MAX
from tallystick.engine.observe import Flushed, Observers
from tallystick.engine.pending_writes import (
    Arriving,
    Blocked,
    Handed,
    Request,
    Stragglers,
    WaitForAll,
    thread_wakeup,
)
from tallystick.errors import StoreError, StoreMisused, TallyError
from tallystick.store.api import Bundle, HeldUp, Outcome, Store, SubmitJobs, call_off

_log = logging.getLogger("tallystick.engine")

# How long the committer waits for callers that it has just released and that are on their way back.
_RETURNING_SECONDS = 0.001

# Threads that wake each other come back at this pace at least, or something else keeps one of them.
_RELAYED_AT_LEAST = 8


class LoopLane:
    """All the tasks of one event loop: gathered into one hand-off, released by one wake-up."""

    def __init__(self, committer: Committer, loop: asyncio.AbstractEventLoop) -> None:
        self._committer = committer
        self.loop = loop
        self._pending: list[Request] = []
        self._leaving = False
        self.released: list[tuple[Callable[[Outcome | BaseException], None], Outcome | BaseException]] = []
        self._last_calls: dict[Callable[[], object], None] = {}

    def before_hand_over(self, function: Callable[[], object]) -> None:
        """Call this once, just before the batch that is gathering now leaves: it may add to it."""
        self._last_calls[function] = None
        self._leave_soon()

    def call(self, bundle: Bundle) -> asyncio.Future[Outcome]:
        """Return a future of the outcome; call it in the loop's own thread."""
        future: asyncio.Future[Outcome] = self.loop.create_future()
        self.put(bundle, partial(_resolve, future))
        return future

    def put(self, bundle: Bundle, arrive: Callable[[Outcome | BaseException], None]) -> None:
        """Call the function with the outcome, in the loop's own thread."""
        self._add(Arriving(bundle, self, arrive))

    def join(self, requests: Sequence[Request]) -> None:
        """Let requests of others travel with the batch that is gathering now."""
        for request in requests:
            self._add(request)

    def begin(self, bundle: Bundle) -> Handed:
        """Hand a bundle over without waiting for it yet."""
        handed = Handed(bundle, self)
        self._add(handed)
        return handed

    def _add(self, request: Request) -> None:
        """Add to the batch that leaves when the loop has run everything that is ready now."""
        self._pending.append(request)
        if not self._leaving:
            self._leave_soon()

    def flushed(self) -> None:
        """Pass on everything released by the last flush; called in the committer's thread."""
        released, self.released = self.released, []
        try:
            self.loop.call_soon_threadsafe(_arrive, released)
        except RuntimeError:
            # The loop is closed. A job that was claimed at its birth is still to be run.
            _arrive(released)

    def _leave_soon(self) -> None:
        if not self._leaving:
            self._leaving = True
            self.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        last_calls, self._last_calls = self._last_calls, {}
        for function in last_calls:
            function()
        self._leaving = False
        pending, self._pending = self._pending, []
        try:
            self._committer.put(pending, back=1)
        except StoreMisused as error:  # it was closed meanwhile, or this is a fork: nothing else would tell
            for request in pending:
                request.release(error)
            released, self.released = self.released, []
            _arrive(released)


def check_process(pid: int) -> None:
    """Refuse what was made in the process that this one is a fork of: its threads are not here."""
    if os.getpid() != pid:
        raise StoreMisused("this Tally was used before a fork; make one in the child process instead")


class Committer:
    """The one thread that writes."""

    def __init__(
        self,
        store: Store,
        *,
        after_flush: Callable[[], None] = lambda: None,
        observers: Observers | None = None,
        apply: Callable[..., Sequence[Outcome | BaseException]] | None = None,
    ) -> None:
        """Start the thread; `after_flush` runs in it between flushes, `apply` is in front of the store's."""
        self._store = store
        self._in_front = apply
        self._check_may_wait = store.check_may_wait
        self.observers = Observers() if observers is None else observers
        self._after_flush = after_flush
        self._queue: deque[Request] = deque()
        self._lanes: dict[asyncio.AbstractEventLoop, LoopLane] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._pid = os.getpid()
        self._wakeup = thread_wakeup()
        self._stragglers = Stragglers()
        self._away = 0
        self.flushes = 0
        self.bundles = 0
        self._thread = threading.Thread(target=self._run, name="tally-committer", daemon=True)
        self._thread.start()

    def put(self, requests: Sequence[Request], *, back: int = 0) -> None:
        """Queue bundles; their requests are released when they are durable or refused.

        `back` says how many of the callers released last have nothing more to add.
        """
        check_process(self._pid)
        # The lock itself: a condition is entered in Python, and every step comes by here.
        with self._lock:
            if self._closing:
                raise StoreMisused("this Tally is closed")
            self._queue.extend(requests)
            self._away -= back
            if self._away <= 0:
                self._changed.notify()

    def begin(self, bundle: Bundle) -> Blocked:
        """Queue a bundle and return the waiter for its outcome."""
        request = self.blocked(bundle)
        self.put([request])
        return request

    def blocked(self, bundle: Bundle) -> Blocked:
        """Return a request for which this thread will wait; refuse if it would wait for itself."""
        self._check_may_wait()
        return Blocked(bundle, self)

    def somebody_sleeps(self) -> None:
        """Note that a thread is about to wait: it wakes the next, and is not expected any more."""
        with self._lock:
            self._away -= 1
            if self._away <= 0:
                self._changed.notify()
        self._wakeup.pass_on()

    def extend(self, request: Request, bundle: Bundle) -> bool:
        """Let a bundle share the fate of one that has not left yet; False when that is on its way."""
        with self._lock:
            if request.taken or self._closing:
                return False
            request.bundle = (*request.bundle, *bundle)
            return True

    def call(self, bundle: Bundle) -> Outcome:
        """Make a bundle durable and return its outcome, blocking this thread."""
        if threading.current_thread() is self._thread:
            raise StoreMisused("the committer cannot wait for itself")
        return self.begin(bundle).wait()

    def call_all(self, bundles: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Make bundles durable in one flush where possible; refusals are returned, not raised."""
        return self.begin_all(bundles).answers() if bundles else []

    def begin_all(self, bundles: Sequence[Bundle]) -> WaitForAll:
        """Queue bundles, at least one, and return the waiter for all of their outcomes."""
        self._check_may_wait()
        together = WaitForAll(len(bundles))
        self.put(together.requests(bundles))
        return together

    def lane(self, loop: asyncio.AbstractEventLoop) -> LoopLane:
        """Return the lane of an event loop."""
        lane = self._lanes.get(loop)
        if lane is None:
            # Every loop that ever submitted would be kept otherwise.
            for gone in [known for known in list(self._lanes) if known.is_closed()]:
                self._lanes.pop(gone, None)
            lane = self._lanes[loop] = LoopLane(self, loop)
        return lane

    def close(self) -> None:
        """Flush what is queued and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._due_again() or self._gather():
            again = self._stragglers.has(batch[0])
            bundles = [request.bundle for request in batch]
            write = self._in_front or self._store.apply
            watched, failure = Flushed in self.observers.wanted, None
            begun = self.observers.clock.monotonic() if watched else None
            try:
                outcomes: Sequence[Outcome | BaseException] = (
                    write(bundles, again=True) if again else write(bundles)
                )
            except BaseException as error:  # noqa: BLE001 (whatever it is, every waiter must learn of it)
                call_off(bundles)
                failure = (
                    error if isinstance(error, TallyError) else StoreError(f"the flush failed: {error!r}")
                )
                failure.__cause__ = None if failure is error else error
                outcomes = [failure] * len(batch)
            self.flushes += 1
            self.bundles += len(batch)
            if begun is not None:
                took = self.observers.clock.monotonic() - begun
                self.observers.tell(Flushed(len(batch), took, failure is not None))
            self._answer(batch, outcomes)
            try:
                self._after_flush()
            except Exception:  # noqa: BLE001 (logged with its trace; the committer goes on)
                _report_waiter()
        closed = StoreMisused("this Tally was closed while this waited for rows that others hold")
        left = self._stragglers.dismiss()
        self._answer(left, [closed] * len(left))
        self._wakeup.wake_all()

    def _answer(self, batch: Sequence[Request], outcomes: Sequence[Outcome | BaseException]) -> None:
        """Give every request its outcome and wake the waiters; those that are held up are tried again."""
        answered = batch
        if self._stragglers or HeldUp in map(type, outcomes):
            told = list(zip(batch, outcomes, strict=True))
            told = [each for each in told if not self._stragglers.take(*each)]
            answered, outcomes = [request for request, _ in told], [outcome for _, outcome in told]
        for request, outcome in zip(answered, outcomes, strict=True):
            try:
                request.release(outcome)
            except Exception:  # noqa: BLE001 (logged with its trace; the others still wait)
                _report_waiter()
        lanes = [lane for lane in list(self._lanes.values()) if lane.released]
        threads = [request for request in answered if type(request) is Blocked]
        self._away = len(lanes) + sum(thread.asleep for thread in threads)
        self._wakeup.start(threads)
        for lane in lanes:
            lane.flushed()

    def _due_again(self) -> Sequence[Request]:
        """Return what is to be tried again now because it was held up; it makes a flush of its own."""
        return self._stragglers.due() if self._stragglers and not self._closing else ()

    def _gather(self) -> Sequence[Request]:
        """Take what is queued; wait first for callers just released, if they are on their way back."""
        with self._changed:
            while not self._queue or self._away > 0:
                if self._closing:
                    break
                if self._away <= 0:
                    self._changed.wait(self._stragglers.seconds())
                    if due := self._due_again():
                        return due
                elif not self._await_returning():
                    self._away = 0
            batch, room = [], FLUSH_BUNDLES_MAX
            while self._queue and room > 0:
                request = self._queue.popleft()
                request.taken = True
                batch.append(request)
                first = request.bundle[0]
                # A list counts as what is in it.
                room -= len(first.job_ids) if type(first) is SubmitJobs else 1
            return batch

    def _await_returning(self) -> bool:
        """Wait a moment for the callers that were released; tell whether more may come."""
        away = self._away
        self._changed.wait(_RETURNING_SECONDS)
        came = away - self._away
        if self._wakeup and came < _RELAYED_AT_LEAST:
            self._wakeup.rescue()
            return True
        return came > 0


def _arrive(released: list[tuple[Callable[[Any], None], Any]]) -> None:
    for arrive, outcome in released:
        try:
            arrive(outcome)
        except Exception:  # noqa: BLE001 (logged with its trace; the others still wait)
            _report_waiter()


def _report_waiter() -> None:
    """Log a waiter that failed to take its outcome: it must not stop the others."""
    _log.exception("committer: a waiter failed", extra={"action": "committer.waiter_failed"})


def _resolve(future: asyncio.Future[Outcome], outcome: Outcome | BaseException) -> None:
    if future.done() or future.get_loop().is_closed():
        return  # its task is gone; what it wrote is durable all the same
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
