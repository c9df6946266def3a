"""The job view of the attempts: a pure function, never a state of its own.

What people see (PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED) follows from the attempt rows, the open
waits, the time and the policy. A stored state is a cache that must always equal it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

from tallystick.core.lifecycles import AttemptState, JobState
from tallystick.defaults import ATTEMPTS


class JobView(StrEnum):
    """The coarse state that users see."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class AbortReason(StrEnum):
    """Why an attempt ended before its commit."""

    EXPIRED = "EXPIRED"
    ERROR = "ERROR"
    FATAL = "FATAL"
    SUSPENDED = "SUSPENDED"
    HELD = "HELD"
    RELEASED = "RELEASED"
    CANCELLED = "CANCELLED"
    DEADLINE = "DEADLINE"
    # Another attempt has the key of this effect.
    DUPLICATE_COMMIT = "DUPLICATE_COMMIT"


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """What the view needs to know about one attempt; progress is a durable record, a wait or a turn."""

    status: AttemptState
    expires_at: int
    charged: bool = False
    progressed: bool = False
    reason: AbortReason | None = None


@dataclass(frozen=True, slots=True)
class ViewPolicy:
    """How many charged attempts without progress a job may have."""

    attempts_max: int = ATTEMPTS


class _Options(msgspec.Struct):
    """What a job's row keeps of its submission beside its columns."""

    attempts_max: Annotated[int, msgspec.Meta(ge=1)] = ATTEMPTS


def attempts_allowed(options: str) -> int | None:
    """Return how many attempts a job may lose in a row, from its row; None if that cannot be read.

    >>> attempts_allowed('{"attempts_max":5}'), attempts_allowed("{}"), attempts_allowed('{"attempts_m')
    (5, 3, None)
    """
    try:
        return msgspec.json.decode(options, type=_Options).attempts_max
    except msgspec.DecodeError:
        return None


_LIVE = (AttemptState.LEASED, AttemptState.IN_PROGRESS)
_ENDS_THE_JOB = (AbortReason.FATAL, AbortReason.DEADLINE)


def charged_since_progress(attempts: Sequence[AttemptFacts]) -> int:
    """Count the charged attempts since the last progress; a job that makes progress is not poison."""
    count = 0
    for attempt in reversed(attempts):
        count += attempt.charged
        if attempt.progressed:
            break
    return count


def job_view(attempts: Sequence[AttemptFacts], open_waits: int, now: int, policy: ViewPolicy) -> JobView:
    """Derive what users see; `attempts` are the job's own, oldest first.

    An expired lease without a commit does not run, whether or not a sweep has passed already. The budget is
    judged when a worker is lost: an error is judged by the workflow's own policy, and ends in FATAL when that
    gives up. A job that waits for a signal or a timer is pending and cannot have failed.
    """
    statuses = {attempt.status for attempt in attempts}
    if AttemptState.DONE in statuses:
        return JobView.SUCCEEDED
    if AttemptState.COMMITTED in statuses:
        return JobView.RUNNING
    if any(attempt.status in _LIVE and now < attempt.expires_at for attempt in attempts):
        return JobView.RUNNING
    reasons = {attempt.reason for attempt in attempts}
    if AbortReason.CANCELLED in reasons:
        return JobView.CANCELLED
    lost = any(newest.charged and newest.reason is not AbortReason.ERROR for newest in attempts[-1:])
    spent = lost and not open_waits and charged_since_progress(attempts) >= policy.attempts_max
    return JobView.FAILED if spent or reasons.intersection(_ENDS_THE_JOB) else JobView.PENDING


def protocol_view(state: JobState, *, in_flight: bool) -> JobView:
    """Return what users see of a protocol job, which has no attempts of its own.

    It runs while a directive of a step is on its way, or a remote worker is at it.
    """
    return _ENDS.get(state, JobView.RUNNING if in_flight else JobView.PENDING)


_ENDS: dict[JobState, JobView] = {
    JobState.SUCCEEDED: JobView.SUCCEEDED,
    JobState.FAILED_FINAL: JobView.FAILED,
    JobState.CANCELLED: JobView.CANCELLED,
}


_ALLOWED: dict[JobState, frozenset[JobView]] = {
    JobState.QUEUED: frozenset({JobView.PENDING}),
    JobState.DISPATCHING: frozenset({JobView.RUNNING, JobView.PENDING}),
    JobState.IN_PROGRESS: frozenset({JobView.RUNNING, JobView.PENDING}),
    JobState.CANCELLING: frozenset({JobView.RUNNING, JobView.PENDING}),
    JobState.SUCCEEDED: frozenset({JobView.SUCCEEDED}),
    JobState.FAILED_FINAL: frozenset({JobView.FAILED}),
    JobState.CANCELLED: frozenset({JobView.CANCELLED}),
}


def agrees(state: JobState, view: JobView) -> bool:
    """Say whether a job's stored state and its derived view may stand side by side."""
    return view in _ALLOWED[state]
