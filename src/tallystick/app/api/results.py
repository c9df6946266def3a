"""Waits for results: a worker in this process reports at once, one query finds all others.

One thread looks, only while a call waits, and asks about all awaited jobs in one statement. Jobs that run
here are asked about too, but seldom: a function that does not return may have lost its job to another one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from tallystick.app.running.sealing import OpenedReads
from tallystick.clock import SystemClock
from tallystick.core.limits import PAGE_ROWS_MAX
from tallystick.engine.committer import check_process
from tallystick.errors import NotFound, StoreMisused, TallyError
from tallystick.store.api import EndJob, JobRow, Store

_log = logging.getLogger("tallystick.app")

LOOK_SECONDS_MIN = 0.005
LOOK_SECONDS_MAX = 0.100

# How often jobs that run here are asked about all the same.
LOOK_HERE_SECONDS = 1.0

# How many of the jobs that ended here last are remembered, for calls a moment later; short ones only.
_RECENT_JOBS_MAX = 4_096
_RECENT_RESULT_CHARS_MAX = 1_024


class EndedJob(msgspec.Struct, frozen=True, gc=False):
    """How a job ended; texts only, so the collector need not walk those that are remembered."""

    state: str
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None

    @classmethod
    def of(cls, row: JobRow | EndJob) -> EndedJob:
        """Take the end from the job's row, or from the bundle that wrote it."""
        return cls(row.state, row.result, row.error, row.error_code, row.error_message)

    @property
    def is_short(self) -> bool:
        """Tell whether it takes little room."""
        return len(self.result or self.error or "") <= _RECENT_RESULT_CHARS_MAX


Listener = Callable[[EndedJob | TallyError], None]


class Results:
    """The calls that wait, by job."""

    def __init__(self, store: Store | OpenedReads, *, runs_here: Callable[[str], bool]) -> None:
        """Wait for nothing yet; `runs_here` tells whether a job's end will be announced by this process."""
        self._store = store
        self._runs_here = runs_here
        self._listeners: dict[str, list[Listener]] = {}
        self._recent: OrderedDict[str, EndedJob] = OrderedDict()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    @property
    def awaited(self) -> int:
        """Return how many jobs callers wait for."""
        return len(self._listeners)

    def recent(self, job_id: str) -> EndedJob | None:
        """Return how a job ended, if that was here and not long ago; what has ended stays as it is."""
        return self._recent.get(job_id)

    def listen(self, job_id: str, listener: Listener) -> None:
        """Call the listener once when the job has ended or this is closed, from any thread."""
        check_process(self._pid)
        with self._lock:
            if self._closed:
                raise StoreMisused("this Tally is closed")
            ended = self._recent.get(job_id)
            if ended is None:
                self._listeners.setdefault(job_id, []).append(listener)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="tally-results", daemon=True)
                    self._thread.start()
        if ended is not None:
            listener(ended)
        elif not self._runs_here(job_id):
            self._wake.set()

    def forget(self, job_id: str, listener: Listener) -> None:
        """Stop waiting."""
        with self._lock:
            listeners = self._listeners.get(job_id, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(job_id, None)

    def announce(self, job_id: str, ended: EndedJob | TallyError) -> None:
        """Tell every call that waits for this job."""
        with self._lock:
            listeners = self._listeners.pop(job_id, ())
            if isinstance(ended, EndedJob) and ended.is_short:
                self._recent[job_id] = ended
                if len(self._recent) > _RECENT_JOBS_MAX:
                    self._recent.popitem(last=False)
        for listener in listeners:
            try:
                listener(ended)
            except Exception:  # noqa: BLE001 (logged with its trace; the others wait too)
                _log.exception("results: a waiter failed", extra={"action": "results.waiter_failed"})

    def close(self) -> None:
        """Stop looking, and let every call go that still waits."""
        with self._lock:
            self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        for job_id in list(self._listeners):
            self.announce(job_id, StoreMisused(f"this Tally was closed before job {job_id} had ended"))

    def _run(self) -> None:
        clock = SystemClock()
        pause = LOOK_SECONDS_MIN
        begin = 0
        here_at = clock.monotonic() + LOOK_HERE_SECONDS
        while not self._closed:
            elsewhere = list(self._listeners)
            if clock.monotonic() >= here_at:
                here_at = clock.monotonic() + LOOK_HERE_SECONDS
            else:
                elsewhere = [job_id for job_id in elsewhere if not self._runs_here(job_id)]
            if not elsewhere:
                self._wake.wait(LOOK_SECONDS_MAX)
                self._wake.clear()
                pause = LOOK_SECONDS_MIN
                continue
            # One page per look, in turns: those that wait longest must not hide the others.
            begin = begin if begin < len(elsewhere) else 0
            found = self._look(elsewhere[begin : begin + PAGE_ROWS_MAX])
            begin += PAGE_ROWS_MAX
            pause = LOOK_SECONDS_MIN if found else min(pause * 1.5, LOOK_SECONDS_MAX)
            self._wake.wait(pause)
            self._wake.clear()

    def _look(self, job_ids: list[str]) -> bool:
        try:
            found = self._store.finished(job_ids)
        except TallyError as error:
            for job_id in job_ids:
                self.announce(job_id, error)
            return True
        for job_id, row in found.items():
            self.announce(job_id, not_there(job_id) if row is None else EndedJob.of(row))
        return bool(found)


def not_there(job_id: str) -> NotFound:
    """Return the error for a job that was removed, or whose submission never became durable."""
    return NotFound(f"there is no job {job_id}", job_id=job_id)
