"""Resumes what was held because the store was restored from a copy, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.app.api.control import resuming
from tallystick.core.verbs.holds import Hold, Resumed
from tallystick.core.watching.acts import PERSON
from tallystick.store.sql.restoring import BY

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

_PAGE: Final = 500


def resume_restored(tally: Tally, by: str = "") -> tuple[int, int]:
    """Resume what is held as RESTORED and the schedules that were paused with it; return both counts."""
    runtime, jobs = tally.runtime(), 0
    inspection = runtime.store.inspect()
    while found := inspection.held_as(Hold.RESTORED, _PAGE):
        wishes = [resuming(job_id, by=by) for job_id in found]
        outcomes = runtime.committer.call_all([wish.said_to(runtime.store) for wish in wishes])
        for wish, outcome in zip(wishes, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            jobs += wish.settle(runtime, outcome) is Resumed.FREE
    stopped = [view.id for view in tally.schedules.all() if view.paused_by == BY]
    for schedule_id in stopped:
        tally.schedules.resume(schedule_id, by=by or PERSON)
    return jobs, len(stopped)
