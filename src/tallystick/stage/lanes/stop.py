"""How a stage is asked to stop: by a call, or by Ctrl-C.

The first Ctrl-C stops in order: nothing new is begun, what is in flight may finish within the grace period,
what is finished is committed. The second one raises KeyboardInterrupt on the spot; the journal is then as a
crash would leave it, which is good enough to resume from.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTED: Final = "interrupted"


class Stop:
    """Whether and why a run shall stop; set from any thread, and from a signal handler."""

    def __init__(self) -> None:
        self.reason = ""
        self._wake: Callable[[], object] | None = None

    def on_request(self, wake: Callable[[], object]) -> None:
        """Call this when a stop is asked for, so that it is noticed at once."""
        self._wake = wake

    def request(self, reason: str) -> None:
        """Ask for a stop; the first reason stays."""
        self.reason = self.reason or reason
        if self._wake is not None:
            self._wake()

    @property
    def interrupted(self) -> bool:
        """Tell whether it was Ctrl-C."""
        return self.reason == INTERRUPTED


@contextmanager
def stopping_on_interrupt(stop: Stop) -> Iterator[None]:
    """Turn the first Ctrl-C into a stop, unless the program handles the signal itself."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        # A handler runs in the middle of anything and may take no lock: it only leaves a note.
        if stop.interrupted:
            raise KeyboardInterrupt
        stop.reason = INTERRUPTED

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
