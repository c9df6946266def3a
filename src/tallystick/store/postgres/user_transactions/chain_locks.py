"""One author at a time: a job's chain is extended either by the committer or by a user's transaction.

Both run in this process and hold the same chain; a place must be durable, or given back, before the other
takes the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager


class Authors:
    """The jobs that are being written for now."""

    def __init__(self) -> None:
        """Start with none."""
        self._writing: set[str] = set()
        self._changed = threading.Condition(threading.Lock())

    @contextmanager
    def writing(self, jobs: AbstractSet[str]) -> Iterator[None]:
        """Wait until no other transaction writes for any of these jobs, then keep others away."""
        with self._changed:
            self._changed.wait_for(lambda: self._writing.isdisjoint(jobs))
            self._writing |= jobs
        try:
            yield
        finally:
            with self._changed:
                self._writing -= jobs
                self._changed.notify_all()
