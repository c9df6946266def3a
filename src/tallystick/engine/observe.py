"""The seam for watching: what happens in this process, told to functions that asked for it.

A kind that no function asked for costs one look into a dictionary. A listener runs in the thread in which the
thing happened, most often the committer's: it must return soon and must not wait for a write. What it raises
is logged and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from tallystick.clock import Clock, SystemClock
from tallystick.core.effects.requests import HeldInDoubt
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.verbs.holds import Hold
from tallystick.errors import StaleLease
from tallystick.store.api import ClaimedJob, EndAttempt, EndJob, Fence

_log = logging.getLogger("tallystick.engine")

Happening = TypeVar("Happening")


class Flushed(NamedTuple):
    """A flush is over: how many bundles it had, how long it took, whether the store took it."""

    bundles: int
    seconds: float
    failed: bool


class Claimed(NamedTuple):
    """A claim was answered: the jobs that it brought, and how many slots it was made for."""

    jobs: tuple[ClaimedJob, ...]
    slots: int


class JobFinished(NamedTuple):
    """A job that ran here has ended, and that is durable."""

    fence: Fence
    handler: str
    state: str
    error_code: str | None
    error_message: str | None


class CancelledHere(NamedTuple):
    """A job was cancelled by this process without its function: it waited, or its grace is over."""

    job_id: str
    # None where only its identifier was at hand.
    handler: str | None
    code: str | None


class JobHeld(NamedTuple):
    """A job that ran here, or that a sweep of this process came to, waits for a person: that is durable."""

    fence: Fence
    handler: str
    hold: str
    why: str


class SegmentLeft(NamedTuple):
    """The function of a job was left here: `end` is what was written last, or the refusal, or None.

    A segment that `suspended` its job has put it away until something comes.
    """

    fence: Fence
    handler: str
    end: object
    suspended: bool


class Reclaimed(NamedTuple):
    """The attempt of a lost worker was taken back, and what became of it."""

    fence: Fence
    became: Reclaim


class StaleReport(NamedTuple):
    """A report came after its lease was over; it was refused and changed nothing."""

    fence: Fence
    handler: str


class TryFailed(NamedTuple):
    """A try of a step failed, which is durable, and the step is tried again after a pause."""

    fence: Fence
    handler: str
    step: str
    tries: int


class Renewed(NamedTuple):
    """The leases of a worker were renewed: how many, and how long that took."""

    leases: int
    seconds: float


class PublishTried(NamedTuple):
    """A directive went out to its service, or did not, and that is durable.

    It was `sent` to an endpoint or `given` to a remote worker that asked; a try has `failed` and is repeated,
    or was the last and the directive is `given up`. `seconds` is how long the endpoint took: none if it asks.
    """

    service: str
    became: Literal["sent", "given", "failed", "given up"]
    seconds: float = 0.0


class Observers:
    """The listeners of one process, by what they want to hear of."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Begin with none; durations are measured by the clock."""
        self.clock = SystemClock() if clock is None else clock
        self._listeners: dict[type, tuple[Callable[[Any], None], ...]] = {}
        # The kinds that any function asked for, now: others need not be made.
        self.wanted: Final = self._listeners.keys()

    def on(self, kind: type[Happening], listener: Callable[[Happening], None]) -> Callable[[], None]:
        """Call the listener whenever this kind of thing happens; return how to stop that."""
        self._listeners[kind] = (*self._listeners.get(kind, ()), listener)

        def stop() -> None:
            left = tuple(each for each in self._listeners[kind] if each is not listener)
            self._listeners[kind] = left
            if not left:
                del self._listeners[kind]

        return stop

    def tell(self, happening: object) -> None:
        """Call every function that asked for it."""
        for listener in self._listeners.get(type(happening), ()):
            try:
                listener(happening)
            except Exception:  # noqa: BLE001 (logged with its trace; a listener must not break what it watches)
                about = {"action": "listener.failed", "kind": type(happening).__name__}
                _log.exception("a listener for %s failed", type(happening).__name__, extra=about)

    def segment_ended(self, fence: Fence, handler: str, end: object, *, suspended: bool = False) -> None:
        """Tell how a segment came to its end: `end` is what was written last, or the refusal."""
        if SegmentLeft in self.wanted:
            self.tell(SegmentLeft(fence, handler, end, suspended))
        if type(end) is EndJob:
            if JobFinished in self.wanted:
                self.tell(JobFinished(fence, handler, end.state, end.error_code, end.error_message))
        elif type(end) is EndAttempt and end.hold is not None:
            self.tell(JobHeld(fence, handler, end.hold, end.hold_reason or ""))
        elif type(end) is HeldInDoubt:
            self.tell(JobHeld(fence, handler, Hold.IN_DOUBT, end.why))
        elif isinstance(end, StaleLease):
            self.tell(StaleReport(fence, handler))
