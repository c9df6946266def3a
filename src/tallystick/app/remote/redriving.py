"""Redriving: a directive that could not be published is sent again, by a fork of its job.

A directive that is dead stays so, and its job as it is. The new job keeps what the other one recorded before
the step, and asks for the step anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.core.lifecycles import JobState, OutboxState
from tallystick.core.remote.rows import WITHDRAWN, OutboxRow, place_of_step
from tallystick.engine.failure import Failure
from tallystick.errors import BadInput, NotFailed, NotFound

if TYPE_CHECKING:
    from tallystick.app.api.job import Job
    from tallystick.app.api.tally import Tally


def redrive(tally: Tally, outbox_id: str, tenant: str | None = None, *, by: str = "") -> Job[Any]:
    """Begin a new job at the step whose directive is dead; said again, it returns the same job.

    A job that has failed with that step is retried: the new one takes its place and its key. With a `tenant`
    the directives of all others are not there.
    """
    inspection = tally.runtime().store.inspect()
    row = inspection.directive(outbox_id)
    if row is None or tenant not in (None, row.tenant_id):
        raise NotFound(
            f"there is no directive {outbox_id[:200]}; `tally outbox list` shows them", outbox_id=outbox_id
        )
    _refuse_living(row)
    job = tally.job(row.job_id).only_of(tenant)
    book = inspection.book(row.job_id)
    dimension, name, occurrence = place_of_step(row.step_id) or (0, row.step_id, 1)
    if book is None:
        raise NotFound(f"job {row.job_id} is not there any more", outbox_id=outbox_id, job_id=row.job_id)
    if dimension != book.dimension:
        raise BadInput(
            f"the directive {outbox_id} belongs to turn {dimension} of its job, and that is in turn "
            f"{book.dimension}: a fork goes back no further than the turn in which a job is",
            outbox_id=outbox_id,
            job_id=row.job_id,
        )
    step, stands = f"{name}#{occurrence}", job.row()
    failed_with = Failure.parse(stands.error).step if stands.error else ""
    if stands.state == JobState.FAILED_FINAL and failed_with in (step, name):
        return job.retry(by=by)
    return job.fork(at=step, id=f"redrive:{outbox_id}", by=by)


def _refuse_living(row: OutboxRow) -> None:
    """Refuse a directive that is out or may still go out, and one that is not wanted any more."""
    if row.state != OutboxState.FAILED_FINAL:
        stands = "is not out yet" if row.state == OutboxState.PENDING else "is out"
        raise NotFailed(
            f"the directive {row.outbox_id} {stands}; only one that could not be published is redriven",
            outbox_id=row.outbox_id,
            state=row.state,
        )
    if row.reason == WITHDRAWN:
        raise NotFailed(
            f"the directive {row.outbox_id} was withdrawn with its job; fork the job if you want it again",
            outbox_id=row.outbox_id,
            state=row.state,
        )
