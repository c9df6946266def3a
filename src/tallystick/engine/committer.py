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
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tallystick.core.limits import FLUSH_BUNDLES_MAX
from tallystick.engine.relay import Relay
from tallystick.errors import StoreError, StoreMisused, TallyError
from tallystick.store.api import Bundle, Outcome, Store

_log = logging.getLogger("tallystick.engine")

# How long the committer waits for callers that it has just released and that are on their way back.
_RETURNING_SECONDS = 0.001

# Threads that wake each other come back at this pace at least, or something else keeps one of them.
_RELAYED_AT_LEAST = 8


class Request(ABC):
    """A bundle on its way, and somebody who wants to know what became of it."""

    __slots__ = ("bundle", "taken")

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.taken = False

    @abstractmethod
    def release(self, outcome: Outcome | BaseException) -> None:
        """Take the outcome; called in the committer's thread, in the order of the batch."""


class Blocked(Request):
    """A thread that waits."""

    __slots__ = ("_committer", "_lock", "asleep", "outcome")

    def __init__(self, bundle: Bundle, committer: Committer) -> None:
        """Begin to wait; `wait` blocks."""
        super().__init__(bundle)
        self._committer = committer
        self._lock = threading.Lock()
        self._lock.acquire()
        self.asleep = False
        self.outcome: Outcome | BaseException = None

    def release(self, outcome: Outcome | BaseException) -> None:
        """Keep the outcome; the thread is woken when its turn comes."""
        self.outcome = outcome

    def wake(self) -> None:
        """Wake the thread."""
        self._lock.release()

    def wait(self) -> Outcome:
        """Block until the outcome is known; raise it if it is a refusal."""
        return settle(self.answer())

    def answer(self) -> Outcome | BaseException:
        """Block until the outcome is known and return it, a refusal too."""
        if self._lock.locked():
            self.asleep = True
            self._committer.somebody_sleeps()
        with self._lock:
            return self.outcome


class _Together:
    """A thread that waits for many bundles and is woken once."""

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self._outcomes: list[Outcome | BaseException] = [None] * len(bundles)
        self._missing = len(bundles)
        self._lock = threading.Lock()
        self._lock.acquire()
        self.requests = [
            Called(bundle, partial(self._arrived, index)) for index, bundle in enumerate(bundles)
        ]

    def answers(self) -> list[Outcome | BaseException]:
        """Block until all outcomes are known and return them, refusals too."""
        with self._lock:
            return self._outcomes

    def _arrived(self, index: int, outcome: Outcome | BaseException) -> None:
        self._outcomes[index] = outcome
        self._missing -= 1
        if not self._missing:
            self._lock.release()


class Called(Request):
    """A function that wants the outcome; it runs in the committer's thread and must not block."""

    __slots__ = ("_function",)

    def __init__(self, bundle: Bundle, function: Callable[[Outcome | BaseException], None]) -> None:
        """Remember whom to call."""
        super().__init__(bundle)
        self._function = function

    def release(self, outcome: Outcome | BaseException) -> None:
        """Call it."""
        self._function(outcome)


class Arriving(Request):
    """A function that wants the outcome in the thread of its event loop."""

    __slots__ = ("_lane", "arrive")

    def __init__(
        self, bundle: Bundle, lane: LoopLane, arrive: Callable[[Outcome | BaseException], None]
    ) -> None:
        """Remember whom to call, and where."""
        super().__init__(bundle)
        self._lane = lane
        self.arrive = arrive

    def release(self, outcome: Outcome | BaseException) -> None:
        """Join those whom one wake-up will tell."""
        self._lane.released.append((self.arrive, outcome))


class Handed(Arriving):
    """A task that goes on, and will want to know later."""

    __slots__ = ("_awaited", "_loop", "_outcomes")

    def __init__(self, bundle: Bundle, lane: LoopLane, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the outcome until somebody asks."""
        super().__init__(bundle, lane, self._keep)
        self._loop = loop
        self._awaited: list[asyncio.Future[Outcome]] = []
        self._outcomes: list[Outcome | BaseException] = []

    async def settled(self) -> Outcome:
        """Wait until the outcome is known; raise it if it is a refusal."""
        if self._outcomes:
            return settle(self._outcomes[0])
        # A future for each who asks: one task of a workflow may be cancelled while others wait.
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._awaited.append(future)
        return await future

    def _keep(self, outcome: Outcome | BaseException) -> None:
        self._outcomes.append(outcome)
        for future in self._awaited:
            _resolve(future, outcome)


class LoopLane:
    """All the tasks of one event loop: gathered into one hand-off, released by one wake-up."""

    def __init__(self, committer: Committer, loop: asyncio.AbstractEventLoop) -> None:
        self._committer = committer
        self._loop = loop
        self._pending: list[Request] = []
        self._leaving = False
        self.released: list[tuple[Callable[[Outcome | BaseException], None], Outcome | BaseException]] = []
        self._last_calls: dict[Callable[[], None], None] = {}

    def before_hand_over(self, function: Callable[[], None]) -> None:
        """Call this once, just before the batch that is gathering now leaves: it may add to it."""
        self._last_calls[function] = None
        self._leave_soon()

    def call(self, bundle: Bundle) -> asyncio.Future[Outcome]:
        """Return a future of the outcome; call it in the loop's own thread."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.put(bundle, partial(_resolve, future))
        return future

    def put(self, bundle: Bundle, arrive: Callable[[Outcome | BaseException], None]) -> None:
        """Call the function with the outcome, in the loop's own thread."""
        self._add(Arriving(bundle, self, arrive))

    def begin(self, bundle: Bundle) -> Handed:
        """Hand a bundle over without waiting for it yet."""
        handed = Handed(bundle, self, self._loop)
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
        # A loop that is closed has nobody left who could be told.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_arrive, released)

    def _leave_soon(self) -> None:
        if not self._leaving:
            self._leaving = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        last_calls, self._last_calls = self._last_calls, {}
        for function in last_calls:
            function()
        self._leaving = False
        pending, self._pending = self._pending, []
        self._committer.put(pending, back=1)


class Committer:
    """The one thread that writes."""

    def __init__(self, store: Store, *, after_flush: Callable[[], None] = lambda: None) -> None:
        """Start the thread; `after_flush` runs in it between two flushes."""
        self._store = store
        self._after_flush = after_flush
        self._queue: deque[Request] = deque()
        self._lanes: dict[asyncio.AbstractEventLoop, LoopLane] = {}
        self._changed = threading.Condition(threading.Lock())
        self._closing = False
        self._pid = os.getpid()
        self._relay = Relay()
        self._away = 0
        self.flushes = 0
        self.bundles = 0
        self._thread = threading.Thread(target=self._run, name="tally-committer", daemon=True)
        self._thread.start()

    def put(self, requests: Sequence[Request], *, back: int = 0) -> None:
        """Queue bundles; their requests are released when they are durable or refused.

        `back` says how many of those who were released last have nothing more to add.
        """
        if os.getpid() != self._pid:
            raise StoreMisused("this Tally was used before a fork; make one in the child process instead")
        with self._changed:
            if self._closing:
                raise StoreMisused("this Tally is closed")
            self._queue.extend(requests)
            self._away -= back
            if self._away <= 0:
                self._changed.notify()

    def begin(self, bundle: Bundle) -> Blocked:
        """Queue a bundle and return who waits for its outcome."""
        request = self.blocked(bundle)
        self.put([request])
        return request

    def blocked(self, bundle: Bundle) -> Blocked:
        """Return a request for which a thread will wait."""
        return Blocked(bundle, self)

    def somebody_sleeps(self) -> None:
        """Note that a thread is about to wait: it wakes the next, and is not expected any more."""
        with self._changed:
            self._away -= 1
            if self._away <= 0:
                self._changed.notify()
        self._relay.pass_on()

    def extend(self, request: Request, bundle: Bundle) -> bool:
        """Let a bundle share the fate of one that has not left yet; False when that is on its way."""
        with self._changed:
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
        if not bundles:
            return []
        together = _Together(bundles)
        self.put(together.requests)
        return together.answers()

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
            bundles = [request.bundle for request in batch]
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
            for request, outcome in zip(batch, outcomes, strict=True):
                _guarded(request.release, outcome)
            lanes = [lane for lane in list(self._lanes.values()) if lane.released]
            threads = [request for request in batch if type(request) is Blocked]
            self._away = len(lanes) + sum(thread.asleep for thread in threads)
            self._relay.start(threads)
            for lane in lanes:
                lane.flushed()
            _guarded(self._after_flush)

    def _gather(self) -> list[Request]:
        """Take what is queued; wait first for those who were just released, if they are on their way back."""
        with self._changed:
            while not self._queue or self._away > 0:
                if self._closing:
                    break
                if self._away <= 0:
                    self._changed.wait()
                elif not self._await_returning():
                    self._away = 0
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), FLUSH_BUNDLES_MAX))]
            for request in batch:
                request.taken = True
            return batch

    def _await_returning(self) -> bool:
        """Wait a moment for those who were released; tell whether more may come."""
        away = self._away
        self._changed.wait(_RETURNING_SECONDS)
        came = away - self._away
        if self._relay and came < _RELAYED_AT_LEAST:
            self._relay.rescue()
            return True
        return came > 0


def settle(outcome: Outcome | BaseException) -> Outcome:
    """Return an outcome, or raise it if it is a refusal."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _arrive(released: list[tuple[Callable[[Any], None], Any]]) -> None:
    for arrive, outcome in released:
        _guarded(arrive, outcome)


def _guarded(function: Callable[..., None], *arguments: object) -> None:
    """Call somebody who must not take everybody else down with him."""
    try:
        function(*arguments)
    except Exception:  # noqa: BLE001 (logged with its trace; the others still wait)
        _log.exception("committer: a waiter failed", extra={"action": "committer.waiter_failed"})


def _resolve(future: asyncio.Future[Outcome], outcome: Outcome | BaseException) -> None:
    if future.done():
        return  # its task was cancelled; what it wrote is durable all the same
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
