"""Whoever waits for a job of another process learns of its end, however many wait beside him."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from tallystick.app.api.results import Results
from tallystick.core.limits import PAGE_ROWS_MAX


class Ending:
    """A store in which one job has ended."""

    def __init__(self, job_id: str) -> None:
        self._row = SimpleNamespace(
            job_id=job_id, state="SUCCEEDED", result="1", error=None, error_code=None, error_message=None
        )

    def finished(self, job_ids):
        return {self._row.job_id: self._row} if self._row.job_id in job_ids else {}


def test_those_who_wait_for_ever_do_not_hide_the_one_whose_job_has_ended():
    """More are awaited than one look takes, and only the last of them has ended."""
    results = Results(Ending("the last"), runs_here=lambda _job_id: False)
    told = threading.Event()
    try:
        for number in range(PAGE_ROWS_MAX + 1):
            results.listen(f"job {number}", lambda _ended: None)
        results.listen("the last", lambda _ended: told.set())
        assert told.wait(30)
    finally:
        results.close()
