"""The thread of a call: its answer is for the segment, or for the books once that has left the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallystick.app.running.daemon_threads import ThreadAnswer


class CallThread:
    """The thread of one call, if it has one."""

    def __init__(self, late: Callable[[ThreadAnswer[Any]], None]) -> None:
        """Wait for its begin; `late` gets its answer if the segment does not wait for it any more."""
        self._late = late
        self._lock = threading.Lock()
        self._running: Future[ThreadAnswer[Any]] | None = None
        self._left = False

    def begun(self, running: Future[ThreadAnswer[Any]]) -> None:
        """Note that the function runs."""
        with self._lock:
            self._running, left = running, self._left
        if left:
            running.add_done_callback(self._tell)

    def leave(self) -> None:
        """Note that the segment has left the call, be its function under way or not yet begun."""
        with self._lock:
            self._left, running = True, self._running
        if running is not None:
            running.add_done_callback(self._tell)

    def _tell(self, running: Future[ThreadAnswer[Any]]) -> None:
        self._late(running.result())
