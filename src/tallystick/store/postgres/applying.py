"""Plans on PostgreSQL: the writes of a flush as lists, one row for each key, sent in one round trip.

Of several writes to one row the last one counts, guarded by what the first one saw: a list that names a row
twice would change it once, without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import msgspec

from tallystick.core.ledger.marks import OPENED
from tallystick.core.lifecycles import STEP, JobState
from tallystick.core.pictures import Activity, JobFacts, Message, Place
from tallystick.core.plans import (
    NO_VALUES,
    AppendFact,
    AskDescendants,
    CountChild,
    DropActivities,
    DropInbox,
    EndAlike,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertEffect,
    InsertMessage,
    InsertRemote,
    InsertStep,
    KeepAct,
    KeepReport,
    MoveActivity,
    MoveAttempt,
    MoveEffect,
    MoveJob,
    MoveMessage,
    MoveRemote,
    MoveSemaphore,
    PutValue,
    WithdrawDirectives,
    Write,
)
from tallystick.core.remote.plans import InsertOutbox, MoveOutbox
from tallystick.core.remote.rows import OutboxRow, ProtocolStep
from tallystick.store.api import Fact, RecordStep, StoredEvent
from tallystick.store.postgres.server.wire import texts
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writing import storable
from tallystick.store.sql.protocols import WITHDRAWN
from tallystick.store.sql.shapes import moved, recorded, remote
from tallystick.store.sql.watching import note_act

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

_ENDED = frozenset(map(str, STEP.final))

# Columns that a write says something about, and None for those of which it says nothing.
Said: TypeAlias = tuple[Any, ...]
_NO_HEAD: Said = (None, None)
_NO_LINK: Said = (None, None, None)
_NOTHING: Said = (None, None, None, None)


class Writes:
    """The writes of a flush, gathered by table."""

    def __init__(self, writing: PostgresBatch, wall: int) -> None:
        """Begin with none."""
        self._writing = writing
        self._wall = wall
        self._jobs: dict[str, tuple[int, bool, JobFacts, Said, Said]] = {}
        self._activities: dict[tuple[str, Place], tuple[int | None, bool, Activity, Said, Said]] = {}
        self._messages: dict[str, tuple[int | None, Message]] = {}
        self._attempts: list[MoveAttempt] = []
        self._ended: list[InsertAttempt] = []
        self._children: list[tuple[object, ...]] = []
        self._events: list[StoredEvent] = []
        self._steps: list[tuple[object, ...]] = []
        self._drops: list[tuple[object, ...]] = []
        self._values: dict[tuple[str, str], PutValue] = {}
        self._asks: list[AskDescendants] = []
        self._opened: list[tuple[object, ...]] = []
        self._remotes: dict[tuple[str, Place], tuple[int, ProtocolStep]] = {}
        self._made: list[OutboxRow] = []
        self._directives: dict[str, tuple[OutboxRow, int]] = {}
        self._withdrawn: list[str] = []
        self._effects: list[InsertEffect | MoveEffect | KeepAct] = []

    def add(self, writes: Sequence[Write]) -> None:
        """Add a plan, in its order; facts take their places now."""
        for write in writes:
            self._add(write)

    def _add(self, write: Write) -> None:  # noqa: C901, PLR0912 (a case for each kind of write)
        match write:
            case MoveJob(job, rev, fact, values):
                self._job(job, rev, hit=job.completed_at is not None, fact=fact, values=values)
            case MoveMessage(message, digits):
                self._message(message, digits)
            case MoveActivity(activity, rev, at, fact, result, error):
                learned = (None, _ended_at(activity, at), result, error)
                self._activity(activity, rev, learned=learned, fact=fact)
            case MoveSemaphore(job, rev, _delta, hit, message, digits, activity, activity_rev):
                self._job(job, rev, hit=hit)
                self._message(message, digits)
                if activity is not None:
                    self._activity(activity, activity_rev)
            case MoveAttempt():
                self._attempts.append(write)
            case InsertActivity(activity, at, fact, result, error):
                born: Said = (at, _ended_at(activity, at), result, error)
                self._activity(activity, None, learned=born, fact=fact)
            case InsertMessage(message):
                self._message(message, None)
            case DropInbox(job_id, keep, signals):
                self._drops.append((job_id, *keep, signals))
            case CountChild(group, rev, hit, message, digits):
                self._activity(group, rev, hit=hit)
                self._message(message, digits)
            case InsertAttempt():
                self._ended.append(write)
            case InsertChild():
                self._child(write)
            case EndAlike():
                self.add(write.each())
            case AskDescendants():
                self._asks.append(write)
            case InsertRemote() | MoveRemote() | InsertOutbox() | MoveOutbox() | WithdrawDirectives():
                self._remote(write)
            case InsertEffect() | MoveEffect() | KeepAct():
                self._effects.append(write)
            case KeepReport(report):
                self._writing.keep_report(report)
            case InsertStep(step):
                self._step(step)
            case AppendFact(fact):
                self._event(fact)
            case PutValue(job_id, name):
                self._values[job_id, name] = write
            case DropActivities():
                raise TypeError("what is dropped is written row by row: see `expanded`")
            case _:
                assert_never(write)

    def _remote(
        self, write: InsertRemote | MoveRemote | InsertOutbox | MoveOutbox | WithdrawDirectives
    ) -> None:
        """Add what concerns remote steps; a row that is moved twice is guarded by what it was at first."""
        match write:
            case InsertRemote(step, place, attempt):
                self._opened.append((step.job_id, *place, attempt, remote(step)))
            case MoveRemote(step, place, rev):
                first = self._remotes.get((step.job_id, place))
                self._remotes[step.job_id, place] = (rev if first is None else first[0], step)
            case InsertOutbox(row):
                self._made.append(row)
            case MoveOutbox(row, rev):
                earlier = self._directives.get(row.outbox_id)
                self._directives[row.outbox_id] = (row, rev if earlier is None else earlier[1])
            case WithdrawDirectives(job_id):
                self._withdrawn.append(job_id)
            case _:
                assert_never(write)

    def _job(
        self, job: JobFacts, rev: int, *, hit: bool, fact: Fact | None = None, values: Said = NO_VALUES
    ) -> None:
        head = _NO_HEAD
        if fact is not None:
            event = self._event(fact)
            head = (event.n, event.event_hash)
        first = self._jobs.get(job.job_id)
        if first is not None:
            rev, had_hit, _job, had, newest = first
            hit, values, head = hit or had_hit, _latest(had, values), _latest(newest, head)
        self._jobs[job.job_id] = (rev, hit, job, values, head)

    def _activity(
        self,
        activity: Activity,
        rev: int | None,
        *,
        hit: bool = False,
        learned: Said = _NOTHING,
        fact: Fact | None = None,
    ) -> None:
        link: Said = _NO_LINK if fact is None else self._writing.placed_link(fact)
        key = (activity.job_id, activity.place)
        first = self._activities.get(key)
        if first is not None:
            rev, had_hit, _activity, had, place = first
            hit, learned, link = hit or had_hit, _latest(had, learned), _latest(place, link)
        self._activities[key] = (rev, hit, activity, learned, link)

    def _message(self, message: Message, digits: int | None) -> None:
        first = self._messages.get(message.guid)
        self._messages[message.guid] = (digits if first is None else first[0], message)

    def _event(self, fact: Fact) -> StoredEvent:
        event = self._writing.placed(fact)
        self._events.append(event)
        return event

    def _step(self, step: RecordStep) -> None:
        self._steps.append((step.fence, recorded(step), self._writing.placed_step(step)))

    def _child(self, write: InsertChild) -> None:
        job, fact, step = write
        event = self._event(fact)
        self._children.append((job, event.n, event.event_hash, step))

    def send(self) -> None:
        """Send everything; each statement fails unless it changes what was planned."""
        ask, times = self._ask, self._writing.times
        self._send_remotes()
        self._send_effects()
        jobs = [
            (rev, hit, *moved(job), *map(storable, values), *head)
            for rev, hit, job, values, head in self._jobs.values()
        ]
        activities = [
            (rev, hit, *activity, *learned, *link)
            for rev, hit, activity, learned, link in self._activities.values()
        ]
        messages = [(digits, *message) for digits, message in self._messages.values()]
        rows = (jobs, activities, messages)
        if any(rows):
            ask("move", *map(_json, rows), str(self._wall), str(sum(map(len, rows))))
        if self._attempts:
            attempts, clock = _json(self._attempts), (times.epoch, times.lease, str(self._wall))
            ask("lock_attempts", attempts)
            ask("move_attempts", attempts, *clock, str(len(self._attempts)))
        if self._ended:
            ask("insert_cancelled_attempts", _json(self._ended), str(self._wall))
        if self._children:
            born = (str(self._wall), JobState.QUEUED.value, str(OPENED))
            ask("insert_children", _json(self._children), *born)
        if self._steps:
            ask("insert_planned_steps", _json(self._steps), str(len(self._steps)))
        if self._events:
            ask("insert_events", _json(self._events), str(len(self._events)))
        if self._values:
            ask("put_values", _json(list(self._values.values())), str(self._wall), str(len(self._values)))
        if self._drops:
            ask("drop_inboxes", _json(self._drops), times.wall)
        # Behind what begins or ends here: those that are asked, and their workers, are seen as they are then.
        for job_id, before, asked, at, ends_at, code in self._asks:
            ask("ask_descendants", job_id, texts(before), asked, str(at), str(ends_at), code)

    def _send_remotes(self) -> None:
        """Send remote steps and directives, in front of the ends of steps, which are moved as waits are."""
        ask, wall = self._ask, str(self._wall)
        if self._opened:
            ask("insert_remote", _json(self._opened), wall)
        if self._remotes:
            steps = [(job, *place, rev, remote(step)) for (job, place), (rev, step) in self._remotes.items()]
            ask("move_remote", _json(steps), wall, str(len(steps)))
        if self._made:
            ask("insert_outbox", _json(self._made))
        if self._directives:
            rows = list(self._directives.values())
            ask("move_outbox", _json(rows), wall, str(len(rows)))
        if self._withdrawn:
            ask("withdraw_directives", texts(self._withdrawn), *WITHDRAWN, wall)

    def _send_effects(self) -> None:
        """Send effects with the attempts at them: those that begin, then those that go on or end.

        One that is moved twice is sent in two lists: its lease and its end are different rows of facts.
        """
        clock = (self._writing.times.epoch, self._writing.times.lease)
        begun = [each for each in self._effects if isinstance(each, InsertEffect)]
        if begun:
            rows = [(row, lease.owner, lease.lease_ms) for row, lease in begun]
            self._ask("insert_effects", _json(rows), *clock, str(self._wall))
        moved = [each for each in self._effects if isinstance(each, MoveEffect)]
        while moved:
            first = {each.row.exec_id: each for each in reversed(moved)}
            moved = [each for each in moved if first[each.row.exec_id] is not each]
            rows = [
                (row, rev, *((None, None) if lease is None else (lease.owner, lease.lease_ms)))
                for row, rev, lease in first.values()
            ]
            self._ask("move_effects", _json(rows), *clock, str(len(rows)))
        for each in self._effects:
            if isinstance(each, KeepAct):
                note_act(self._writing, each.act)

    def _ask(self, name: str, *parameters: object) -> None:
        self._writing.connection.execute(sql(name), parameters)


def _ended_at(activity: Activity, at: int) -> int | None:
    return at if activity.state in _ENDED else None


def _latest(first: Said, second: Said) -> Said:
    """Return what two writes to one row say: where the second says nothing, what the first said."""
    if not any(first):
        return second
    return tuple(now if now is not None else before for before, now in zip(first, second, strict=True))


def _json(rows: object) -> str:
    return msgspec.json.encode(rows).decode()
