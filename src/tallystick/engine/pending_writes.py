"""What travels to the committer: bundles, each with a function or thread that gets its outcome.

Bundles that wait for rows which others hold are stragglers: each is tried again by itself, and no flush waits
for it. Threads whose outcomes are known are woken one by one.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from tallystick.clock import SystemClock
from tallystick.store.api import Bundle, HeldUp, Outcome, SubmitJob
from tallystick.tuning import is_plain

if TYPE_CHECKING:
    from tallystick.engine.committer import Committer, LoopLane

# How long after a try the next one comes, at first and later on.
_FIRST_SECONDS: Final = 0.02
_LAST_SECONDS: Final = 0.5

# After threads had to be rescued, this many flushes wake all at once.
_WARY_FLUSHES: Final = 256


class Request(ABC):
    """A bundle on its way, and the caller that wants its outcome."""

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


class WaitForAll:
    """A thread that waits for many bundles and is woken once."""

    def __init__(self, count: int) -> None:
        """Begin to wait for so many."""
        self._outcomes: list[Outcome | BaseException] = [None] * count
        self._missing = count
        self._lock = threading.Lock()
        self._lock.acquire()

    def requests(self, bundles: Sequence[Bundle]) -> Sequence[Request]:
        """Return a request for each bundle."""
        return [_OneOfMany(bundle, self, index) for index, bundle in enumerate(bundles)]

    def answers(self) -> list[Outcome | BaseException]:
        """Block until all outcomes are known and return them, refusals too."""
        with self._lock:
            return self._outcomes

    def arrived(self, index: int, outcome: Outcome | BaseException) -> None:
        """Keep one outcome, and wake the thread if it is the last."""
        self._outcomes[index] = outcome
        self._missing -= 1
        if not self._missing:
            self._lock.release()


class _OneOfMany(Request):
    """One bundle of those for which a thread waits."""

    __slots__ = ("_index", "_together")

    def __init__(self, bundle: Bundle, together: WaitForAll, index: int) -> None:
        self.bundle = bundle
        self.taken = False
        self._together = together
        self._index = index

    def release(self, outcome: Outcome | BaseException) -> None:
        """Pass it on."""
        self._together.arrived(self._index, outcome)


class Called(Request):
    """A function that wants the outcome; it runs in the committer's thread and must not block."""

    __slots__ = ("_function",)

    def __init__(self, bundle: Bundle, function: Callable[[Outcome | BaseException], None]) -> None:
        """Remember what to call."""
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
        """Remember what to call, and where."""
        super().__init__(bundle)
        self._lane = lane
        self.arrive = arrive

    def release(self, outcome: Outcome | BaseException) -> None:
        """Join those that one wake-up will call."""
        self._lane.released.append((self.arrive, outcome))


class Handed(Request):
    """A task that goes on, and will want to know later."""

    # Nothing here points back to itself: what every step makes must go without the help of the collector.
    __slots__ = ("_arrive", "_awaited", "_lane", "known", "refusal")

    def __init__(self, bundle: Bundle, lane: LoopLane) -> None:
        """Remember whether it was refused, until a caller asks."""
        # Written out, not left to the base class: every step makes one of these.
        self.bundle = bundle
        self.taken = False
        self._lane = lane
        self._arrive: Callable[[Outcome | BaseException], None] | None = None
        self._awaited: Sequence[asyncio.Future[None]] = ()
        self.refusal: BaseException | None = None
        self.known = False

    def release(self, outcome: Outcome | BaseException) -> None:
        """Join those that one wake-up will call."""
        self._lane.released.append((self._arrive or self._keep, outcome))

    def tell(self, arrive: Callable[[Outcome | BaseException], None]) -> None:
        """Give the outcome to this function instead."""
        self._arrive = arrive

    def told(self) -> asyncio.Future[None]:
        """Return a future that is done when the outcome is known."""
        # One for each task that asks: one task of a workflow may be cancelled while others wait.
        future: asyncio.Future[None] = asyncio.Future(loop=self._lane.loop)
        self._awaited = (*self._awaited, future)
        return future

    async def settled(self) -> BaseException | None:
        """Wait until the outcome is known, and return it if it is a refusal."""
        if not self.known:
            await self.told()
        return self.refusal

    def _keep(self, outcome: Outcome | BaseException) -> None:
        if outcome is not None and isinstance(outcome, BaseException):
            self.refusal = outcome
        self.known = True
        for future in self._awaited:
            if not future.done():  # its task was cancelled
                future.set_result(None)


def settle(outcome: Outcome | BaseException) -> Outcome:
    """Return an outcome, or raise it if it is a refusal."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class Straggler:
    """One request, since when it waits, and when it is tried again."""

    __slots__ = ("_begun_at", "_pause", "due_at", "request")

    def __init__(self, request: Request, now: float) -> None:
        """Begin to wait."""
        self.request = request
        self._begun_at = now
        self._pause = _FIRST_SECONDS
        self.due_at = now + self._pause

    def wait_on(self, now: float, busy_ms: int) -> bool:
        """Wait for the next try; False when it has waited for as long as it may."""
        self._pause = min(self._pause * 2, _LAST_SECONDS)
        self.due_at = now + self._pause
        return now - self._begun_at < busy_ms / 1000


class Stragglers:
    """All of them; used by the committer's thread alone."""

    def __init__(self) -> None:
        """Begin with none."""
        self._clock = SystemClock()
        self._waiting: dict[Request, Straggler] = {}

    def __bool__(self) -> bool:
        """Tell whether any request waits."""
        return bool(self._waiting)

    def has(self, request: Request) -> bool:
        """Tell whether a request is one of them."""
        return request in self._waiting

    def take(self, request: Request, outcome: object) -> bool:
        """Let a request wait that was held up, and tell whether it does; one with another outcome does not.

        A submission that has a slot of a worker does not: its submitter gives the slot back first.
        """
        if not isinstance(outcome, HeldUp) or _has_slot(request):
            self._waiting.pop(request, None)
            return False
        now = self._clock.monotonic()
        known = self._waiting.get(request)
        if known is None:
            self._waiting[request] = Straggler(request, now)
            return True
        if known.wait_on(now, outcome.busy_ms):
            return True
        del self._waiting[request]
        return False

    def due(self) -> Sequence[Request]:
        """Return those that are to be tried again now."""
        now = self._clock.monotonic()
        return [straggler.request for straggler in self._waiting.values() if straggler.due_at <= now]

    def seconds(self) -> float | None:
        """Return how soon the next of them is due, or None if there is none."""
        if not self._waiting:
            return None
        first = min(straggler.due_at for straggler in self._waiting.values())
        return max(0.0, first - self._clock.monotonic())

    def dismiss(self) -> Sequence[Request]:
        """Let all of them go."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting)


def _has_slot(request: Request) -> bool:
    first = request.bundle[0]
    return isinstance(first, SubmitJob) and first.lease is not None


class Sleeper(Protocol):
    """A thread that waits, or will, and can be woken."""

    asleep: bool

    def wake(self) -> None:
        """Let it run."""
        ...


class OneByOne:
    """The threads that may run and have not been woken yet: they are woken one after the other.

    Only one thread of an interpreter can run at a time. If all are woken together they queue for its lock,
    and each is put to sleep and woken twice. So one is woken, and the thread that is about to wait wakes the
    next. Where a woken thread stays away, because its function waits for something else, the others would
    wait for nothing: then all are woken, and for a while all at once. The plain twin always does that.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: deque[Sleeper] = deque()
        self._wary = 0

    def __bool__(self) -> bool:
        """Tell whether any is left."""
        return bool(self._waiting)

    def start(self, sleepers: Sequence[Sleeper]) -> None:
        """Wake the first, which will wake the others."""
        for sleeper in sleepers:
            # A thread that is not asleep yet finds the door open, and has no other to pass it on to.
            if sleeper.asleep:
                self._waiting.append(sleeper)
            else:
                sleeper.wake()
        if self._wary:
            self._wary -= 1
            self.wake_all()
        else:
            self.pass_on()

    def pass_on(self) -> None:
        """Wake the next one; called by a thread that is about to wait."""
        try:
            sleeper = self._waiting.popleft()
        except IndexError:
            return
        sleeper.wake()

    def rescue(self) -> None:
        """Wake all: a thread that was to wake the next stays away."""
        self._wary = _WARY_FLUSHES
        self.wake_all()

    def wake_all(self) -> None:
        """Wake the threads that are left."""
        while self._waiting:
            self.pass_on()


class AllAtOnce(OneByOne):
    """The plain twin: a thread is woken as soon as its outcome is known."""

    def start(self, sleepers: Sequence[Sleeper]) -> None:
        """Wake all of them."""
        for sleeper in sleepers:
            sleeper.wake()


def thread_wakeup() -> OneByOne:
    """Return the way in which threads are woken in this process."""
    return AllAtOnce() if is_plain() else OneByOne()
