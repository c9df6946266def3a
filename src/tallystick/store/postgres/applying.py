"""Plans on PostgreSQL: the writes of a flush as lists, one row for each key, sent in one round trip.

Of several writes to one row the last one counts, guarded by what the first one saw: a list that names a row
twice would change it once, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from tallystick.core.deciding import see
from tallystick.core.lifecycles import STEP, JobState, StepState
from tallystick.core.marks import OPENED
from tallystick.core.pictures import Activity, JobFacts, Message, Now, Pictures
from tallystick.core.plans import (
    NO_VALUES,
    AppendFact,
    CountChild,
    DropActivities,
    DropInbox,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertMessage,
    InsertStep,
    JobValues,
    MoveActivity,
    MoveAttempt,
    MoveJob,
    MoveMessage,
    MoveSemaphore,
    Write,
)
from tallystick.store.api import Event, Fact, RecordStep
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writing import storable
from tallystick.store.sql.shapes import recorded

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import Batch

_DROPPED = STEP.follow(StepState.IN_PROGRESS, "drop").target
Row = dict[str, Any]


class Writes:
    """The writes of a flush, gathered by table."""

    def __init__(self, writing: Batch, wall: int) -> None:
        """Begin with none."""
        self._writing = writing
        self._wall = wall
        self._jobs: dict[str, Row] = {}
        self._activities: dict[tuple[object, ...], Row] = {}
        self._messages: dict[str, Row] = {}
        self._attempts: list[MoveAttempt] = []
        self._ended: list[InsertAttempt] = []
        self._children: list[tuple[object, ...]] = []
        self._events: list[Event] = []
        self._steps: list[tuple[object, ...]] = []
        self._drops: list[tuple[object, ...]] = []

    def add(self, writes: Sequence[Write]) -> None:
        """Add a plan, in its order; facts take their places now."""
        for write in writes:
            self._add(write)

    def _add(self, write: Write) -> None:  # noqa: C901, PLR0912 (a case for each kind of write)
        match write:
            case MoveJob(job, rev, fact, values):
                self._job(job, rev, hit=job.completed_at is not None, fact=fact, values=values)
            case MoveSemaphore(job, rev, _delta, hit, message, digits, activity, activity_rev):
                self._job(job, rev, hit=hit)
                self._message(message, digits)
                if activity is not None:
                    self._activity(activity, activity_rev)
            case CountChild(group, rev, hit, message, digits):
                self._activity(group, rev, hit=hit)
                self._message(message, digits)
            case InsertActivity(activity, at, fact, result):
                self._activity(activity, None, created_at=at, at=at, fact=fact, result=result)
            case MoveActivity(activity, rev, at, fact, result):
                self._activity(activity, rev, at=at, fact=fact, result=result)
            case InsertMessage(message):
                self._message(message, None)
            case MoveMessage(message, digits):
                self._message(message, digits)
            case MoveAttempt():
                self._attempts.append(write)
            case InsertAttempt():
                self._ended.append(write)
            case InsertChild():
                self._child(write)
            case InsertStep(step):
                self._step(step)
            case AppendFact(fact):
                self._event(fact)
            case DropActivities():
                raise TypeError("what is dropped is written row by row: see `expanded`")
            case DropInbox(job_id, keep, signals):
                self._drops.append((job_id, *keep, signals))
            case _:
                assert_never(write)

    def _job(
        self, job: JobFacts, rev: int, *, hit: bool, fact: Fact | None = None, values: JobValues = NO_VALUES
    ) -> None:
        row = self._jobs.setdefault(job.job_id, {"before": rev, "hit": False})
        row |= job._asdict()
        row["hit"] = row["hit"] or hit
        row["updated_at"] = self._wall
        row |= {name: storable(value) for name, value in values._asdict().items() if value is not None}
        if fact is not None:
            event = self._event(fact)
            row |= {"head_n": event.n, "head_hash": event.event_hash}

    def _activity(
        self,
        activity: Activity,
        rev: int | None,
        *,
        hit: bool = False,
        created_at: int | None = None,
        at: int | None = None,
        fact: Fact | None = None,
        result: str | None = None,
    ) -> None:
        key = (activity.job_id, *activity.place)
        row = self._activities.setdefault(key, {"before": rev, "created_at": created_at, "hit": False})
        row |= activity._asdict()
        row["hit"] = row["hit"] or hit
        if at is not None and StepState(activity.state) in STEP.final:
            row["completed_at"] = at
        if fact is not None:
            row |= {"result": result, **self._writing.placed_link(fact)._asdict()}

    def _message(self, message: Message, digits: int | None) -> None:
        row = self._messages.setdefault(message.guid, {"before": digits})
        row |= message._asdict()

    def _event(self, fact: Fact) -> Event:
        event = self._writing.placed(fact)
        self._events.append(event)
        return event

    def _step(self, step: RecordStep) -> None:
        self._steps.append((step.fence, recorded(step), self._writing.placed_step(step)))

    def _child(self, write: InsertChild) -> None:
        job, fact, parent, step, detached = write
        event = self._event(fact)
        self._children.append((job, event.n, event.event_hash, parent, step, detached))

    def send(self) -> None:
        """Send everything; each statement fails unless it changes what was planned."""
        ask, times = self._ask, self._writing.times
        moved = (list(self._jobs.values()), list(self._activities.values()), list(self._messages.values()))
        if any(moved):
            ask("move", *map(_json, moved), str(sum(map(len, moved))))
        if self._attempts:
            clock = (times.epoch, times.lease, times.wall)
            ask("move_attempts", _json(self._attempts), *clock, str(len(self._attempts)))
        if self._ended:
            ask("insert_cancelled_attempts", _json(self._ended), str(self._wall))
        if self._children:
            born = (str(self._wall), JobState.QUEUED.value, str(OPENED))
            ask("insert_children", _json(self._children), *born)
        if self._steps:
            ask("insert_planned_steps", _json(self._steps), str(len(self._steps)))
        if self._events:
            ask("insert_events", _json(self._events), str(len(self._events)))
        if self._drops:
            ask("drop_inboxes", _json(self._drops), times.wall)

    def _ask(self, name: str, *parameters: object) -> None:
        self._writing.connection.execute(sql(name), parameters)


def expanded(pictures: Pictures, writes: Sequence[Write], now: Now) -> list[Write]:
    """Return writes with what is dropped as rows: a list would meet those that this flush moves as well.

    Each write is put into the pictures before the next: what is dropped keeps the digits it was just given.
    """
    rows: list[Write] = []
    for write in writes:
        if isinstance(write, DropActivities):
            for activity in pictures[write.job_id].open_activities():
                dropped = activity._replace(state=_DROPPED, rev=activity.rev + 1)
                rows.append(MoveActivity(dropped, activity.rev, now.wall, None, None))
        else:
            rows.append(write)
        see(pictures, (write,))
    return rows


def _json(rows: object) -> str:
    return msgspec.json.encode(rows).decode()
