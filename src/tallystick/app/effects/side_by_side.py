"""Calls of effects that one segment has under way at once, and which of them may end it.

What a call says after the end of its segment is refused. So a call in doubt is written down when the others
under way have said what came of them, and meanwhile none begins; and a call that waits for another job, or
for an instant that is far away, ends the segment when nothing else of it goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tallystick.app.replay.context import WorkflowContext

# Threads of a workflow may make its first calls at once.
_lock = threading.Lock()


class _Stuck(NamedTuple):
    """A call that cannot go on in this segment, and until when; None: until another job has ended a call."""

    place: tuple[str, int]
    due_at: int | None


class EffectCalls:
    """The calls of one segment; each is an object of its caller."""

    def __init__(self, in_flight: set[tuple[str, int]]) -> None:
        """Begin with none; `in_flight` are the places of all calls of the segment, of steps too."""
        self._in_flight = in_flight
        # What is done when a call is over: what came of it is written, or is in doubt.
        self._over: dict[object, Future[None]] = {}
        self._stuck: dict[object, _Stuck] = {}
        # What is done when a call of the segment is over, or another one is stuck.
        self._stirred: Future[None] = Future()
        self._leaving = 0
        # What is done when all calls in doubt are written down, or one that asked alone has its answer.
        self._parked: Future[None] | None = None

    def begin(self, call: object) -> Future[None] | None:
        """Note that a call begins; if the segment is about to end none does: return what to wait for."""
        self.end(call)
        with _lock:
            if self._parked is None:
                self._over[call] = Future()
            return self._parked

    def end(self, call: object) -> None:
        """Note that a call is over, if it is not already."""
        with _lock:
            over = self._over.pop(call, None)
            self._stuck.pop(call, None)
        if over is not None:
            over.set_result(None)

    def doubt(self, call: object) -> list[Future[None]]:
        """Note that a call is in doubt, and return what it has to wait for before it is written down."""
        self.end(call)
        with _lock:
            self._leaving += 1
            if self._parked is None:
                self._parked = Future()
            return list(self._over.values())

    def leave(self, call: object, place: tuple[str, int], due_at: int | None = None) -> Future[None] | None:
        """Let a call ask alone whether the segment ends; return what to wait for while others go on.

        One that rests until `due_at` leaves this to one that waits for another job: the row of the job then
        says both.
        """
        if call not in self._stuck:
            self.end(call)
            with _lock:
                self._stuck[call] = _Stuck(place, due_at)
            self.stir()  # others that are stuck need not wait for this one any more
        with _lock:
            if self._parked is not None:
                return self._parked
            stuck = self._stuck.values()
            yields = due_at is not None and any(other.due_at is None for other in stuck)
            if yields or not self._in_flight <= {other.place for other in stuck}:
                return self._stirred
            del self._stuck[call]
            self._leaving, self._parked, self._over[call] = 1, Future(), Future()
            return None

    def stir(self) -> None:
        """Note that a call of the segment is over, of a step or an effect."""
        with _lock:
            if not self._stuck:
                return
            before, self._stirred = self._stirred, Future()
        before.set_result(None)

    def parked(self) -> None:
        """Note that a call in doubt was written down, or could not be, or that one has asked alone."""
        with _lock:
            self._leaving -= 1
            if self._leaving:
                return
            parked, self._parked = self._parked, None
        assert parked is not None, "it was about to leave"
        parked.set_result(None)
        self.stir()

    def rests_until(self, due_at: int) -> int:
        """Return when the first call of the segment can go on that rests, this one among them."""
        with _lock:
            others = [other.due_at for other in self._stuck.values() if other.due_at is not None]
        return min(due_at, *others) if others else due_at

    def under_way(self) -> Iterator[Future[None]]:
        """Return what is done when the calls are over that are under way, one after the other."""
        while True:
            with _lock:
                over = self._parked or next(iter(self._over.values()), None)
            if over is None:
                return
            yield over


def effect_calls_of(context: WorkflowContext) -> EffectCalls:
    """Return the calls of the segment that runs in this context."""
    with _lock:
        if context.effect_calls is None:
            context.effect_calls = EffectCalls(context.in_flight)
            context.stirs = (*context.stirs, context.effect_calls.stir)
        return context.effect_calls


def let_finish(context: WorkflowContext) -> None:
    """Wait until no call of an effect is under way: its segment is about to end."""
    if context.effect_calls is not None:
        for over in context.effect_calls.under_way():
            over.result()


async def let_finish_async(context: WorkflowContext) -> None:
    """Do the same in a task."""
    if context.effect_calls is not None:
        for over in context.effect_calls.under_way():
            await asyncio.shield(asyncio.wrap_future(over))
