"""Wakes segments that stay in memory at a wait when a message may have come for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Arrivals:
    """The segments of one worker that have not given up their lease at a wait yet."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Callable[[], None]]] = {}

    @contextmanager
    def listening(self, job_id: str, listener: Callable[[], None]) -> Iterator[None]:
        """Call the listener, from any thread, whenever something may have come for the job."""
        with self._lock:
            self._listeners.setdefault(job_id, []).append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners[job_id].remove(listener)
                if not self._listeners[job_id]:
                    del self._listeners[job_id]

    def notify(self, job_id: str) -> None:
        """Something has come for this job."""
        with self._lock:
            listeners = list(self._listeners.get(job_id, ()))
        for listener in listeners:
            listener()

    def stir(self) -> None:
        """Note that a process has written: it may be for any of them."""
        with self._lock:
            waiting = list(self._listeners)
        for job_id in waiting:
            self.notify(job_id)
