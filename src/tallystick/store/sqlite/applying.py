"""Plans on a file: the writes of a flush in lists, whose guards must find exactly what was looked at.

What one job is to have written is written in the order of its plan. Between jobs there is no order, so writes
of one kind go together: in a round every kind has its list, and a job whose plan goes back to an earlier kind
goes on in the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from tallystick.core.ledger.marks import OPENED
from tallystick.core.lifecycles import STEP, JobState
from tallystick.core.pictures import Activity, Place
from tallystick.core.plans import (
    AppendFact,
    AskDescendants,
    CountChild,
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
from tallystick.core.remote.plans import InsertOutbox, MoveOutbox, StaleReport
from tallystick.core.watching.acts import NoteAct
from tallystick.store.api import Fact, Fence, NewLease, StoredEvent
from tallystick.store.refusals import STALE_REPORTS_MAX
from tallystick.store.sql.protocols import WITHDRAWN
from tallystick.store.sql.reads import listed
from tallystick.store.sql.shapes import alike, moved, remote
from tallystick.store.sql.watching import note_act
from tallystick.store.sqlite.multi_row import write_exactly, write_rows

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch

_ENDED: Final = frozenset(map(str, STEP.final))
_NO_FENCE: Final = Fence("", 0, "")
_NOWHERE: Final = (None, None, None)
# The job of a write, the row that it changes, and what is given to its statement.
_Row: TypeAlias = tuple[str, object, Any]
_NOT_BEGUN: Final[tuple[int, int, set[object]]] = (0, -1, set())


class Rounds:
    """The writes of a flush, gathered by kind."""

    def __init__(self, batch: SqliteBatch) -> None:
        """Begin with none."""
        self._batch = batch
        # In each round the rows of each kind.
        self._rounds: list[dict[type[Write], list[Any]]] = []
        # How far each job is: the round, the kind in it, and its rows in that list; none comes twice.
        self._reached: dict[str, tuple[int, int, set[object]]] = {}
        self._events: list[StoredEvent] = []
        self._asks: list[AskDescendants] = []
        self._reports: list[StaleReport] = []
        self._acts: list[NoteAct] = []
        self._ends: list[EndAlike] = []
        # The fence that lost its lease, if a step is refused; only a bundle that is alone hears of it.
        self._holder = _NO_FENCE

    def add(self, writes: Iterable[Write]) -> None:
        """Add plans, in their order; facts take their places now."""
        rounds, how_far, row_of, ranks = self._rounds, self._reached, self._rows, self._ranks
        for write in writes:
            kind = type(write)
            if kind not in row_of:
                self._add_last(write)
                continue
            job_id, key, row = row_of[kind](self, write)
            at, reached, keys = how_far.get(job_id, _NOT_BEGUN)
            rank = ranks[kind]
            if rank == reached and key not in keys:
                keys.add(key)
            else:
                if rank <= reached:
                    at += 1
                how_far[job_id] = (at, rank, {key})
            if at == len(rounds):
                rounds.append({})
            if kind in rounds[at]:
                rounds[at][kind].append(row)
            else:
                rounds[at][kind] = [row]

    def _add_last(self, write: Write) -> None:
        """Add what belongs to no round: facts, refused reports, acts, the word to everything below a job."""
        match write:
            case AppendFact(fact):
                self._event(fact)
            case AskDescendants():
                self._asks.append(write)
            case KeepReport(report):
                self._reports.append(report)
            case KeepAct(act):
                self._acts.append(act)
            case EndAlike():
                self._ends.append(write)
            case _:
                raise TypeError(f"a plan that wants {type(write).__name__} is not one for this store")

    def write(self) -> None:
        """Write everything; whatever differs from what was looked at is a bug: the lock was held."""
        batch = self._batch
        for kinds in self._rounds:
            for kind in sorted(kinds, key=self._ranks.__getitem__):
                rows = kinds[kind]
                if kind is InsertStep:
                    batch.many("insert_steps", rows, self._holder)
                elif kind is InsertEffect:
                    self._insert_effects(rows)
                elif kind is MoveEffect:
                    self._move_effects(rows)
                elif kind is CountChild:
                    self._count_children(rows)
                elif kind in _COUNTED:
                    write_exactly(batch.connection, _COUNTED[kind], rows)
                else:
                    write_rows(batch.cursor, _STATEMENTS[kind], rows)
        self._end_alike()
        write_exactly(batch.connection, "insert_event", self._events)
        # Behind what begins or ends here: those that are asked, and their workers, are seen as they are then.
        for job_id, before, *about in self._asks:
            batch.run("ask_descendants", (job_id, listed(before), *about))
        self._keep()

    def _keep(self) -> None:
        """Write what is kept for people: refused reports, and acts."""
        batch = self._batch
        for report in self._reports:
            batch.run("insert_stale_reports", (batch.wall, *report))
            batch.run("trim_stale_reports", (STALE_REPORTS_MAX,))
        for act in self._acts:
            note_act(batch, act)

    def _end_alike(self) -> None:
        """Write the ends of jobs that no worker has claimed: each row as it is at last."""
        connection = self._batch.connection
        for end in self._ends:
            write_exactly(connection, "insert_message", end.messages())
            attempts = [self._own_attempt(attempt)[-1] for attempt in end.attempts()]
            write_exactly(connection, "insert_cancelled_attempts", attempts)
            write_exactly(connection, "move_job", [self._job(move)[-1] for move in end.jobs()])

    def _insert_effects(self, writes: Sequence[InsertEffect]) -> None:
        """Write effects that begin: the key first, so that a taken one is refused before all else."""
        batch = self._batch
        write_rows(batch.cursor, "insert_effects", [row for row, _lease in writes])
        attempts = [
            (row.job_id, row.unit, row.attempt, row.state, row.exec_id, *self._lease(lease), batch.wall)
            for row, lease in writes
        ]
        write_rows(batch.cursor, "insert_effect_attempts", attempts)

    def _move_effects(self, writes: Sequence[MoveEffect]) -> None:
        """Write effects that go on or end, each with the attempt at it."""
        write_exactly(self._batch.connection, "move_effects", [(*row, rev) for row, rev, _lease in writes])
        attempts = [
            (row.job_id, row.unit, row.attempt, row.state, *self._lease(lease), row.ended_at)
            for row, _rev, lease in writes
        ]
        write_exactly(self._batch.connection, "move_effect_attempts", attempts)

    def _lease(self, lease: NewLease | None) -> tuple[object, ...]:
        """Return the columns of a lease that begins now; without one they stay as they are."""
        if lease is None:
            return (None, None, None, None)
        return (lease.lease_id, lease.owner, self._batch.epoch, self._batch.boot + lease.lease_ms)

    def _count_children(self, counted: list[CountChild]) -> None:
        """Write the words of children that have ended, and each group as the last of them leaves it."""
        groups: dict[tuple[str, Place], tuple[int, bool, Activity]] = {}
        for group, rev, hit, _message, _digits in counted:
            key = (group.job_id, group.place)
            before, had_hit, _group = groups.get(key, (rev, False, group))
            groups[key] = (before, hit or had_hit, group)
        new = [write.message for write in counted if write.digits is None]
        write_rows(self._batch.cursor, "insert_message", new)
        taken = [(*write.message, write.digits) for write in counted if write.digits is not None]
        write_exactly(self._batch.connection, "move_message", taken)
        moved = [
            (job_id, *place, before, group.ledger, group.semaphore, group.failed, group.rev, hit)
            for (job_id, place), (before, hit, group) in groups.items()
        ]
        write_exactly(self._batch.connection, "move_groups", moved)

    def _event(self, fact: Fact) -> StoredEvent:
        event = self._batch.placed(fact)
        self._events.append(event)
        return event

    def _place(self, fact: Fact | None) -> tuple[object, object, object]:
        return _NOWHERE if fact is None else self._batch.places.link(fact)

    def _job(self, write: MoveJob) -> _Row:
        job, rev, fact, values = write
        head: tuple[object, object] = (None, None)
        if fact is not None:
            event = self._event(fact)
            head = (event.n, event.event_hash)
        return job.job_id, job.job_id, (*moved(job), rev, *head, *values, self._batch.wall)

    def _semaphore(self, write: MoveSemaphore) -> _Row:
        job, rev, delta, hit, message, digits, activity, activity_rev = write
        about = (job.job_id, rev, delta, job.root_ledger, hit, message.guid, digits, message.ledger)
        place = (message.acked_at, message.dimension, message.name, message.occurrence)
        marked = (activity_rev, None if activity is None else activity.ledger)
        return job.job_id, message.guid, (*about, *place, *marked)

    def _child_counted(self, write: CountChild) -> _Row:
        return write.group.job_id, write.message.guid, write

    def _new_activity(self, write: InsertActivity) -> _Row:
        activity, at, fact, result, error = write
        row = (*activity, at, None if fact is None else at, result, error, *self._place(fact))
        return activity.job_id, activity.place, row

    def _activity(self, write: MoveActivity) -> _Row:
        activity, rev, at, fact, result, error = write
        job_id, dimension, name, occurrence, _kind, state, ledger, after, attempt, *_counts = activity
        place = (dimension, name, occurrence)
        learned = (at if state in _ENDED else None, result, error, *self._place(fact))
        return job_id, place, (job_id, *place, rev, state, ledger, after, attempt, *learned)

    def _new_remote(self, write: InsertRemote) -> _Row:
        step, place, attempt = write
        return step.job_id, place, (step.job_id, *place, attempt, self._batch.wall, *remote(step))

    def _remote(self, write: MoveRemote) -> _Row:
        step, place, rev = write
        return step.job_id, place, (*remote(step), step.job_id, *place, rev, self._batch.wall)

    def _new_directive(self, write: InsertOutbox) -> _Row:
        (row,) = write
        return row.job_id, row.outbox_id, row

    def _directive(self, write: MoveOutbox) -> _Row:
        row, rev = write
        return row.job_id, row.outbox_id, (*row, rev, self._batch.wall)

    def _withdrawn(self, write: WithdrawDirectives) -> _Row:
        (job_id,) = write
        return job_id, job_id, (job_id, *WITHDRAWN, self._batch.wall)

    def _new_effect(self, write: InsertEffect) -> _Row:
        return write.row.job_id, write.row.exec_id, write

    def _effect(self, write: MoveEffect) -> _Row:
        return write.row.job_id, write.row.exec_id, write

    def _new_message(self, write: InsertMessage) -> _Row:
        (message,) = write
        return message.job_id, message.guid, message

    def _message(self, write: MoveMessage) -> _Row:
        message, digits = write
        return message.job_id, message.guid, (*message, digits)

    def _attempt(self, write: MoveAttempt) -> _Row:
        batch = self._batch
        return write.job_id, write.job_id, (*write, batch.wall, batch.epoch, batch.boot)

    def _own_attempt(self, write: InsertAttempt) -> _Row:
        return write.job_id, write.job_id, (*write, self._batch.wall)

    def _value(self, write: PutValue) -> _Row:
        return write.job_id, write.name, (*write, self._batch.wall)

    def _child(self, write: InsertChild) -> _Row:
        job, fact, step = write
        batch, event = self._batch, self._event(fact)
        deadline_at = None if job.deadline_at is None else batch.moment(job.deadline_at, job.created_at)
        when = (batch.moment(job.ready_at, job.created_at), deadline_at, batch.wall)
        born = (JobState.QUEUED, OPENED, event.n, event.event_hash, step)
        return job.job_id, job.job_id, (job.job_id, job.payload, *alike(job), *when, *born)

    def _step(self, write: InsertStep) -> _Row:
        (step,) = write
        self._holder = step.fence
        place = (step.dimension, step.name, step.occurrence)
        (row,) = self._batch.step_rows(write)
        return step.fence.job_id, place, row

    def _drop(self, write: DropInbox) -> _Row:
        job_id, keep, signals = write
        return job_id, job_id, (job_id, *keep, self._batch.wall, signals)

    # How the row of each kind is made, in the order in which most plans want them written.
    _rows: ClassVar[dict[type[Write], Callable[[Rounds, Any], _Row]]] = {
        InsertStep: _step,
        InsertRemote: _new_remote,
        MoveRemote: _remote,
        InsertOutbox: _new_directive,
        MoveOutbox: _directive,
        WithdrawDirectives: _withdrawn,
        InsertEffect: _new_effect,
        MoveEffect: _effect,
        InsertActivity: _new_activity,
        InsertMessage: _new_message,
        MoveActivity: _activity,
        MoveMessage: _message,
        MoveSemaphore: _semaphore,
        CountChild: _child_counted,
        MoveAttempt: _attempt,
        InsertAttempt: _own_attempt,
        DropInbox: _drop,
        PutValue: _value,
        InsertChild: _child,
        MoveJob: _job,
    }
    _ranks: ClassVar[dict[type[Write], int]] = {kind: rank for rank, kind in enumerate(_rows)}


# Statements whose guard is seen in what they changed, and those that fail by themselves.
_COUNTED: Final[dict[type[Write], str]] = {
    InsertActivity: "insert_activity",
    MoveActivity: "move_activity",
    MoveRemote: "move_remote",
    MoveOutbox: "move_outbox",
    MoveMessage: "move_message",
    MoveAttempt: "move_attempts",
    PutValue: "put_values",
    MoveJob: "move_job",
}
_STATEMENTS: Final[dict[type[Write], str]] = {
    InsertRemote: "insert_remote",
    InsertOutbox: "insert_outbox",
    WithdrawDirectives: "withdraw_directives",
    InsertMessage: "insert_message",
    MoveSemaphore: "move_semaphore",
    InsertAttempt: "insert_cancelled_attempts",
    DropInbox: "drop_inboxes",
    InsertChild: "insert_children",
}


def apply(batch: SqliteBatch, writes: Iterable[Write]) -> None:
    """Write plans, in their order."""
    rounds = Rounds(batch)
    rounds.add(writes)
    rounds.write()
