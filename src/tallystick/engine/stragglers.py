"""Bundles that wait for rows which others hold: each is tried again by itself, and no flush waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.clock import SystemClock
from tallystick.engine.pending_writes import Request
from tallystick.store.api import HeldUp, SubmitJob

# How long after a try the next one comes, at first and later on.
_FIRST_SECONDS: Final = 0.02
_LAST_SECONDS: Final = 0.5


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
