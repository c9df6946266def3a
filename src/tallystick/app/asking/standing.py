"""Where a job stands: one word for every state that its rows can be in, which `why` makes a sentence of.

Every state has its word and no two words fit one state, so a sentence that is made of the word is true of
the rows. The model checker asks for the word in every state that it visits.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from tallystick.core.effects.rows import EffectRow
from tallystick.core.lifecycles import AttemptState, JobState
from tallystick.core.pictures import Activity, JobFacts, Lease, Now


class Stand(StrEnum):
    """Where a job stands; the value is what is true of it."""

    SUCCEEDED = "it has ended well"
    FAILED = "it has failed for good"
    CANCELLED = "it was cancelled"
    REMOTE = "a remote step is worked on"
    COMMITTED = "its work is committed and its end is not written"
    CLEANING_UP = "it was asked to end, and its worker lets it clean up"
    STOPPING = "it is held, and its worker lets it come to its next call"
    RUNNING = "a worker runs it"
    LOST = "its lease is over, and no worker has taken it back"
    ENDING = "it was asked to end, no worker runs it, and a sweep ends it"
    ENDING_IN_DOUBT = "it was asked to end, and waits until it is known what came of an effect"
    TO_CLEAN_UP = "it was asked to end, and waits for a worker to clean up"
    HELD = "it waits for a person"
    LATE = "its deadline has passed, and the next sweep cancels it"
    QUEUED = "it has not begun, and waits for a worker"
    NOT_DUE = "it has not begun, and is not due yet"
    DUE = "it can go on, and waits for a worker"
    BACKING_OFF = "it has failed, and is tried again later"
    WAITING = "it waits for something, and no worker runs it"
    NOWHERE = "nothing will ever move it: its books are wrong"


class Position(NamedTuple):
    """What of its rows says where a job stands.

    `is_waiting` tells whether it has anything open, and `is_in_doubt` whether it is unknown what came of an
    effect of it.
    """

    state: str
    attempt: int
    ready_at: int | None
    hold: str | None
    deadline_at: int | None
    lease: Lease | None
    is_waiting: bool
    is_remote: bool = False
    is_in_doubt: bool = False

    @classmethod
    def of(
        cls,
        job: JobFacts,
        lease: Lease | None,
        activities: Iterable[Activity],
        effects: Iterable[EffectRow] = (),
    ) -> Position:
        """Return the position of a job in a picture."""
        is_waiting = any(each.is_open for each in activities)
        is_in_doubt = any(row.is_open and row.may_have_happened for row in effects)
        about = (job.state, job.attempt, job.ready_at, job.hold, job.deadline_at, lease)
        return cls(*about, is_waiting, job.is_protocol, is_in_doubt)


_ENDED = {
    JobState.SUCCEEDED: Stand.SUCCEEDED,
    JobState.FAILED_FINAL: Stand.FAILED,
    JobState.CANCELLED: Stand.CANCELLED,
}


def stand_of(position: Position, now: Now) -> Stand:  # noqa: PLR0911 (a line for each word)
    """Return where a job stands."""
    state = JobState(position.state)
    if state in _ENDED:
        return _ENDED[state]
    if position.is_remote:
        return Stand.REMOTE
    if position.lease is not None:
        return _held_by_a_worker(state, position, position.lease)
    if state is JobState.CANCELLING:
        if position.ready_at is not None and position.ready_at <= now.wall:
            return Stand.TO_CLEAN_UP
        return Stand.ENDING_IN_DOUBT if position.is_in_doubt else Stand.ENDING
    if position.hold is not None:
        return Stand.HELD
    if position.deadline_at is not None and position.deadline_at <= now.wall:
        return Stand.LATE
    return _free(position, now)


def _held_by_a_worker(state: JobState, position: Position, lease: Lease) -> Stand:
    if lease.status == AttemptState.COMMITTED:
        # No sweep finishes what is held; a worker that lives may.
        return Stand.COMMITTED if lease.live or position.hold is None else Stand.HELD
    if not lease.live:
        return Stand.LOST
    if state is JobState.CANCELLING:
        return Stand.CLEANING_UP
    return Stand.RUNNING if position.hold is None else Stand.STOPPING


def _free(position: Position, now: Now) -> Stand:
    """Return where a job stands that no worker holds and that is not stopped."""
    ready_at, begun = position.ready_at, position.attempt > 0
    if ready_at is not None and ready_at <= now.wall:
        return Stand.DUE if begun else Stand.QUEUED
    if ready_at is not None and not begun:
        return Stand.NOT_DUE
    if position.is_waiting:
        return Stand.WAITING
    return Stand.NOWHERE if ready_at is None else Stand.BACKING_OFF
