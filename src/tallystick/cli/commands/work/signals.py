"""Signals: the first stops a worker with its grace, the second stops it at once."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

# Takes the line of progress away and shows the cursor, which hides while there is one.
_AS_IT_WAS: Final = b"\r\x1b[K\x1b[?25h"


class StopRequests:
    """Counts the signals and wakes the thread that waits for the first."""

    def __init__(self, *, watch_stdin: bool, at_once: Callable[[], None]) -> None:
        """Call `at_once` at the second signal; with `watch_stdin` its end counts like the first."""
        # A pipe, because a handler may not touch a lock that the interrupted code may hold.
        self._reader, self._writer = os.pipe()
        self._watched = [self._reader, *([0] if watch_stdin else [])]
        self._at_once = at_once
        self._count = 0
        self.reason = ""

    def wait(self, seconds: float) -> bool:
        """Wait for the first request and tell whether it has come."""
        if self.reason:
            return True
        ready, _, _ = select.select(self._watched, [], [], seconds)
        if 0 in ready and self._reader not in ready and not os.read(0, 1024):
            self.reason = "the process that started this one has gone"
        return bool(self.reason)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Listen to the signals while the block lasts; a Ctrl-C that is ignored for us stays ignored.

        A shell that starts a program in the background ignores it, so that it stops what runs in front only.
        """
        heard = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            heard.append(signal.SIGINT)
        old = {number: signal.signal(number, self._on_signal) for number in heard}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
            os.close(self._reader)
            os.close(self._writer)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            self._at_once()
            with suppress(OSError):
                if os.isatty(2):
                    os.write(2, _AS_IT_WAS)
                os.write(2, b"stopped at once; running jobs are left to their leases\n")
            os._exit(128 + number)
        self.reason = signal.Signals(number).name
        os.write(self._writer, b".")
