"""What jobs show of themselves, read from outside: once, or as it changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from tallystick.app.api.results import EndedJob, not_there
from tallystick.app.values.codec import Codec
from tallystick.errors import TallyError
from tallystick.store.api import ShownValue, Store

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.running.sealing import OpenedReads

_LOOK_SECONDS: Final = 0.1
_VALUE: Final = Codec(Any)


def shown(store: Store | OpenedReads, job_id: str, name: str = "") -> dict[str, Any]:
    """Return what a job shows, by name."""
    found = store.values([job_id], name)
    if not found and store.job(job_id) is None:
        raise not_there(job_id)
    return {row.name: _VALUE.decode(row.value, f"the value {row.name}") for row in found}


class _WatchedJob:
    """How far a watch of one job has come."""

    def __init__(self, runtime: Runtime, job_id: str) -> None:
        self._store = runtime.reads
        self._results = runtime.results
        self._job_id = job_id
        self._seen: dict[str, int] = {}
        self._end: list[EndedJob | TallyError] = []
        self.ended = threading.Event()
        self._results.listen(job_id, self._take_end)

    def _take_end(self, end: EndedJob | TallyError) -> None:
        self._end.append(end)
        self.ended.set()

    def look(self) -> tuple[bool, list[tuple[str, Any]]]:
        """Return whether the job had ended before this look, and what has changed since the last one."""
        over = self.ended.is_set()
        for end in self._end:
            if isinstance(end, TallyError):
                raise end
        new = [row for row in self._store.values([self._job_id]) if self._is_new(row)]
        return over, [(row.name, _VALUE.decode(row.value, f"the value {row.name}")) for row in new]

    def _is_new(self, row: ShownValue) -> bool:
        known, self._seen[row.name] = self._seen.get(row.name), row.rev
        return known != row.rev

    def stop(self) -> None:
        """Wait for the end no longer."""
        self._results.forget(self._job_id, self._take_end)


def watch(runtime: Runtime, job_id: str) -> Iterator[tuple[str, Any]]:
    """Give what a job shows whenever it changes, until the job has ended."""
    runtime.store.check_may_wait()
    watched = _WatchedJob(runtime, job_id)
    try:
        over = False
        while not over:
            over, changes = watched.look()
            yield from changes
            watched.ended.wait(_LOOK_SECONDS)
    finally:
        watched.stop()


async def watch_aio(runtime: Runtime, job_id: str) -> AsyncIterator[tuple[str, Any]]:
    """Do the same without blocking the event loop."""
    watched = _WatchedJob(runtime, job_id)
    try:
        over = False
        while not over:
            over, changes = await asyncio.to_thread(watched.look)
            for change in changes:
                yield change
            if not over:
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        watched.stop()
