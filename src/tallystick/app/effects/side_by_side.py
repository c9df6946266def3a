"""Calls of effects that one segment has under way at once.

A call in doubt ends the segment, and what the others say after that is refused. So it is written down when
they have said what came of them; meanwhile none begins.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.app.replay.context import WorkflowContext

# Threads of a workflow may make its first calls at once.
_lock = threading.Lock()


class EffectCalls:
    """The calls of one segment; each is an object of its caller."""

    def __init__(self) -> None:
        """Begin with none."""
        # What is done when a call is over: what came of it is written, or is in doubt.
        self._over: dict[object, Future[None]] = {}
        self._doubts = 0
        # What is done when all calls in doubt are written down.
        self._parked: Future[None] | None = None

    def begin(self, call: object) -> Future[None] | None:
        """Note that a call begins; if one is in doubt none does: return what to wait for."""
        self.end(call)
        with _lock:
            if self._parked is None:
                self._over[call] = Future()
            return self._parked

    def end(self, call: object) -> None:
        """Note that a call is over, if it is not already."""
        with _lock:
            over = self._over.pop(call, None)
        if over is not None:
            over.set_result(None)

    def doubt(self, call: object) -> list[Future[None]]:
        """Note that a call is in doubt, and return what it has to wait for before it is written down."""
        self.end(call)
        with _lock:
            self._doubts += 1
            if self._parked is None:
                self._parked = Future()
            return list(self._over.values())

    def parked(self) -> None:
        """Note that a call in doubt was written down, or could not be."""
        with _lock:
            self._doubts -= 1
            if self._doubts:
                return
            parked, self._parked = self._parked, None
        assert parked is not None, "it was in doubt"
        parked.set_result(None)

    def beside(self) -> Future[None] | None:
        """Return what a caller waits for that is about to leave the function, and is not under way itself."""
        with _lock:
            return self._parked or next(iter(self._over.values()), None)


def effect_calls_of(context: WorkflowContext) -> EffectCalls:
    """Return the calls of the segment that runs in this context."""
    with _lock:
        if context.effect_calls is None:
            context.effect_calls = EffectCalls()
        return context.effect_calls
