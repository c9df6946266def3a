"""Plans on a file: each write is one statement, whose guard must find exactly what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from tallystick.core.ledger.marks import OPENED
from tallystick.core.lifecycles import STEP, JobState, StepState
from tallystick.core.plans import (
    AppendFact,
    AskDescendants,
    CountChild,
    DropActivities,
    DropInbox,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertMessage,
    InsertStep,
    MoveActivity,
    MoveAttempt,
    MoveJob,
    MoveMessage,
    MoveSemaphore,
    PutValue,
    Write,
)
from tallystick.errors import InvariantBroken
from tallystick.store.api import Fact
from tallystick.store.refusals import Refused
from tallystick.store.sql.reads import listed
from tallystick.store.sql.shapes import alike

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch

_DROPPED: Final = STEP.follow(StepState.IN_PROGRESS, "drop").target
_NOWHERE: Final = (None, None, None)


def apply(batch: SqliteBatch, writes: tuple[Write, ...]) -> None:
    """Write a plan; whatever differs from what was looked at is a bug: the lock was held meanwhile."""
    for write in writes:
        _apply(batch, write)


def _apply(batch: SqliteBatch, write: Write) -> None:  # noqa: C901, PLR0912 (a case for each kind of write)
    match write:
        case MoveJob():
            _move_job(batch, write)
        case MoveSemaphore():
            _move_semaphore(batch, write)
        case CountChild():
            batch.run("count_child", child_row(write))
        case InsertActivity():
            _insert_activity(batch, write)
        case MoveActivity():
            _move_activity(batch, write)
        case InsertMessage(message):
            batch.run("insert_message", message)
        case MoveMessage(message, digits):
            _one(batch, "move_message", (*message, digits))
        case MoveAttempt():
            _one(batch, "move_attempts", (*write, batch.wall, batch.epoch, batch.boot))
        case InsertAttempt():
            batch.run("insert_cancelled_attempts", (*write, batch.wall))
        case InsertChild():
            _insert_child(batch, write)
        case AskDescendants():
            job_id, before, *about = write
            batch.run("ask_descendants", (job_id, listed(before), *about))
        case InsertStep(step):
            batch.record_steps([step])
        case AppendFact(fact):
            batch.run("insert_event", batch.placed(fact))
        case PutValue():
            _one(batch, "put_values", (*write, batch.wall))
        case DropActivities(job_id, how_many):
            _exactly(batch, "drop_activities", (job_id, _DROPPED, batch.wall), how_many)
        case DropInbox(job_id, keep, signals):
            batch.run("drop_inboxes", (job_id, *keep, batch.wall, signals))
        case _:
            assert_never(write)


def _move_job(batch: SqliteBatch, write: MoveJob) -> None:
    job, rev, fact, values = write
    n, head = None, None
    if fact is not None:
        event = batch.placed(fact)
        n, head = event.n, event.event_hash
        batch.run("insert_event", event)
    _one(batch, "move_job", (*job, rev, n, head, *values, batch.wall))


def _move_semaphore(batch: SqliteBatch, write: MoveSemaphore) -> None:
    job, rev, delta, hit, message, digits, activity, activity_rev = write
    about = (
        message.guid,
        digits,
        message.ledger,
        message.acked_at,
        message.dimension,
        message.name,
        message.occurrence,
    )
    marked = (activity_rev, None if activity is None else activity.ledger)
    batch.run("move_semaphore", (job.job_id, rev, delta, job.root_ledger, hit, *about, *marked))


def child_row(write: CountChild) -> tuple[object, ...]:
    """Return the row of `count_child`."""
    group, rev, hit, message, digits = write
    about = (message.guid, digits, message.ledger, message.payload, message.acked_at)
    return (group.job_id, *group.place, rev, group.ledger, group.failed, hit, *about)


def _place(batch: SqliteBatch, fact: Fact | None) -> tuple[object, object, object]:
    return _NOWHERE if fact is None else batch.places.link(fact)


def _insert_activity(batch: SqliteBatch, write: InsertActivity) -> None:
    activity, at, fact, result = write
    completed_at = None if fact is None else at
    _one(batch, "insert_activity", (*activity, at, completed_at, result, *_place(batch, fact)))


def _move_activity(batch: SqliteBatch, write: MoveActivity) -> None:
    activity, rev, at, fact, result = write
    row = (
        activity.job_id, *activity.place, rev, activity.state, activity.ledger, activity.rev,
        activity.attempt, None if fact is None else at, result, *_place(batch, fact),
    )  # fmt: skip
    _one(batch, "move_activity", row)


def _insert_child(batch: SqliteBatch, write: InsertChild) -> None:
    job, fact, step = write
    event = batch.placed(fact)
    batch.run("insert_event", event)
    deadline_at = None if job.deadline_at is None else batch.moment(job.deadline_at, job.created_at)
    when = (batch.moment(job.ready_at, job.created_at), deadline_at, batch.wall)
    born = (JobState.QUEUED, OPENED, event.n, event.event_hash, step)
    batch.run("insert_children", (job.job_id, job.payload, *alike(job), *when, *born))


def _one(batch: SqliteBatch, name: str, row: tuple[object, ...]) -> None:
    _exactly(batch, name, row, 1)


def _exactly(batch: SqliteBatch, name: str, row: tuple[object, ...], count: int) -> None:
    if batch.changed(name, row) != count:
        raise Refused(
            InvariantBroken(f"{name} did not change {count} rows, as it was planned", statement=name)
        )
