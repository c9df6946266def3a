"""Asking jobs to end: one that runs, everything below it, and why."""

from __future__ import annotations

from typing import Final

from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.pictures import JobFacts, Now, Picture
from tallystick.core.plans import AskDescendants, JobValues, MoveJob, Plan
from tallystick.core.requests import CancelJob

DEADLINE: Final = "DEADLINE"
"""The code of a job that was cancelled because its time was over."""

_ASKED: Final = JOB.follow(JobState.QUEUED, "cancel").target
_ASKABLE: Final = tuple(edge.source.value for edge in JOB.transitions if edge.trigger == "cancel")


class EndedNow(str):
    """The state of a job that this very request has ended; that of one which had ended before is a state."""

    __slots__ = ()


def by(who: str) -> dict[str, object]:
    """Return what a fact says about the person who wanted it."""
    return {"by": who} if who else {}


def is_refused(job: JobFacts, request: CancelJob, now: Now) -> bool:
    """Tell whether a cancellation is not meant: it is one for the deadline, and there is time left."""
    return request.late and not job.is_late(now)


def why_asked(job: JobFacts, request: CancelJob) -> JobValues:
    """Return what the row of a job says about the reason for its end."""
    return JobValues(error_code=DEADLINE if request.late else job.code)


def ask(picture: Picture, request: CancelJob, now: Now) -> Plan:
    """Ask a job to end by itself, within its grace, and everything below it."""
    job = picture.job
    if job.state == JobState.CANCELLING:
        return Plan((), JobState.CANCELLING)
    asked = JOB.follow(JobState(job.state), "cancel").target
    after = job._replace(state=asked, hold=None, cancel_at=now.wall + request.grace_ms, rev=job.rev + 1)
    values = why_asked(job, request)
    below = ask_descendants(picture, request.grace_ms, values.error_code, now)
    # Its worker may be another process, and is to hear of it soon.
    moved = MoveJob(after._replace(code=values.error_code), job.rev, None, values)
    return Plan((moved, *below), asked, wakes=True)


def let_finish(picture: Picture, request: CancelJob, until: int, now: Now) -> Plan:
    """Let remote workers end what they have begun for a job that no worker runs; it is asked to end by then.

    No further directive goes out, and what else it waits for does not wake it.
    """
    job = picture.job
    state = JobState(job.state)
    asked = state if state is JobState.CANCELLING else JOB.follow(state, "cancel").target
    if job.cancel_at == until and state is asked:
        return Plan((), asked)
    values = why_asked(job, request)
    after = job._replace(state=asked, hold=None, ready_at=None, cancel_at=until, code=values.error_code)
    below = ask_descendants(picture, request.grace_ms, values.error_code, now)
    return Plan((MoveJob(after._replace(rev=job.rev + 1), job.rev, None, values), *below), asked, wakes=True)


def ask_descendants(
    picture: Picture, grace_ms: int, code: str | None, now: Now
) -> tuple[AskDescendants, ...]:
    """Return what asks everything below a job to end, if there is anything; a detached job is not below."""
    if not picture.has_open_children:
        return ()
    ends_at = now.wall + grace_ms
    return (AskDescendants(picture.job.job_id, _ASKABLE, _ASKED, now.wall, ends_at, code),)
