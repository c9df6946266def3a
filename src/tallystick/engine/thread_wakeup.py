"""Waking many threads of one interpreter: one after the other, not all at once.

Only one of them can run at a time. If all are woken together they queue for the interpreter's lock, and each
is put to sleep and woken twice. So one is woken, and the thread that is about to wait wakes the next. Where a
woken thread stays away, because its function waits for something else, the others would wait for nothing:
then all of them are woken, and for a while all are woken at once. The plain twin always wakes all at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from tallystick.tuning import is_plain

# After threads had to be rescued, this many flushes wake all at once.
_WARY_FLUSHES: Final = 256


class Sleeper(Protocol):
    """A thread that waits, or will, and can be woken."""

    asleep: bool

    def wake(self) -> None:
        """Let it run."""
        ...


class OneByOne:
    """The threads that may run and have not been woken yet."""

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
