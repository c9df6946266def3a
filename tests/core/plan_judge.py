"""A second account of what a plan may do to rows: moves and marks by hand, and digits by their positions.

Nothing here asks what made the plan, neither functions nor machines. Digits are read as text, as the
specification writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, assert_never

from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity, JobFacts, Lease, Message, Pictures, Place
from tallystick.core.plans import (
    AppendFact,
    AskDescendants,
    CountChild,
    DropActivities,
    DropInbox,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertEffect,
    InsertMessage,
    InsertRemote,
    InsertStep,
    JobValues,
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
from tests.app import digits_by_hand as expected

ROOT, START = "root", "start"
OPEN = "IN_PROGRESS"
# What the row of a wait or a group may still learn when it has ended: step 2, step 3, or both.
LEARNT = (1_000_000_000, 100_000_000, 1_100_000_000)


def is_open(activity: Activity) -> bool:
    """Tell whether an activity goes on; a remote step is in other states before that."""
    return activity.state == OPEN or (
        activity.kind == "remote" and activity.state not in expected.ACTIVITY_ENDS
    )


class Digits(NamedTuple):
    """A ledger by its positions; the fourth means leg 1 complete, or in a message that it has closed."""

    leg1: int
    fourth: int
    work: int
    children: int
    tasks: int
    entry: int


def read(ledger: int) -> Digits:
    text = f"{ledger:015d}"
    assert len(text) == 15, f"{text} does not have fifteen digits"
    held = Digits(int(text[:3]), *map(int, text[3:7]), int(text[7:]))  # type: ignore[call-arg]  # the map has four
    assert max(held[1:5]) <= 1, f"{text} has a mark that is neither 0 nor 1"
    return held


def marks(ledger: int) -> str:
    return f"{ledger:015d}"[3:7]


def grown(before: int, after: int, by_hand: set[str]) -> tuple[Digits, Digits]:
    """Return both ledgers; no count and no mark goes back, and each mark that is new stands on the others.

    Rows may have been wrong before a plan; from marks that were written by hand it comes to such marks again.
    """
    old, new = read(before), read(after)
    assert marks(before) not in by_hand or marks(after) in by_hand, f"{before:015d} became {after:015d}"
    assert all(b <= a for b, a in zip(old, new, strict=True)), f"{before:015d} became {after:015d}"
    assert new.work == old.work or new.entry, f"{after:015d}: step 1 without an entry"
    assert new.children == old.children or new.work, f"{after:015d}: step 2 without step 1"
    assert new.tasks == old.tasks or new.children, f"{after:015d}: step 3 without step 2"
    return old, new


def grows_as_activity(before: int, after: int) -> int:
    """Hold an activity's digits against those before; return how many messages have entered it."""
    old, new = grown(before, after, expected.ACTIVITY_MARKS)
    assert new.leg1 - old.leg1 <= 1, f"{before:015d} became {after:015d}: leg 1 was entered twice"
    assert new.fourth == old.fourth or new.leg1, f"{after:015d}: leg 1 is complete and was never entered"
    assert new.entry == old.entry or new.fourth, f"{after:015d}: leg 2 before leg 1 is complete"
    return new.entry - old.entry


def grows_as_message(before: int, after: int) -> bool:
    """Hold a message's digits against those before; tell whether it has just become the closer."""
    old, new = grown(before, after, expected.MESSAGE_MARKS)
    assert new.leg1 == 0, f"{after:015d}: the first three digits of a message are zero"
    assert old.entry in (0, new.entry), f"{before:015d} became {after:015d}: another entry"
    assert new.fourth == old.fourth or (new.children and not old.children), (
        f"{after:015d}: closed without step 2"
    )
    assert new.tasks == old.tasks or new.fourth, f"{after:015d}: step 3 of one that closed nothing"
    return new.fourth > old.fourth


class Judge:
    """The rows of some pictures, and what a plan makes of them, write by write."""

    def __init__(self, pictures: Pictures) -> None:
        self.jobs: dict[str, JobFacts] = {name: picture.job for name, picture in pictures.items()}
        self.leases: dict[str, Lease | None] = {name: picture.lease for name, picture in pictures.items()}
        self.attempts = {(name, lease.attempt) for name, lease in self.leases.items() if lease}
        self.activities: dict[tuple[str, Place], Activity] = {}
        self.messages: dict[str, Message] = {}
        self.born: set[str] = set()
        self.effects: dict[str, EffectRow] = {}
        self.parents = {name: picture.has_open_children for name, picture in pictures.items()}
        for name, picture in pictures.items():
            self.activities |= {(name, place): row for place, row in picture.activities.items()}
            self.messages |= picture.messages
            self.born |= picture.children
            self.effects |= {row.exec_id: row for row, _live in (picture.effects or {}).values()}
        self.before = dict(self.jobs)
        # How often messages have entered an activity, by its own digits and by those of the messages.
        self.entries: dict[Any, list[int]] = {}
        # Who has closed a job or a group in this plan.
        self.closers: dict[Any, list[str]] = {}
        # Remote steps that are opened here, and have no directive yet.
        self.asked: list[str] = []
        self.facts: list[str] = []
        self.values: dict[str, JobValues] = {}

    def judge(self, writes: Sequence[Write]) -> None:
        """Hold every write against the rows as those before it have left them, then all of them together."""
        for write in writes:
            self._hold(write)
        for place, (counted, entered) in self.entries.items():
            assert counted == entered, f"{place}: {entered} messages entered, {counted} were counted"
        assert not self.asked, f"{self.asked} are opened without a directive"
        for what, closers in self.closers.items():
            assert len(closers) == 1, f"{what} was closed by {closers}"
        for name, job in self.jobs.items():
            if job.completed_at is not None and self.before[name].completed_at is None:
                self._ended(job)

    def _hold(self, write: Write) -> None:  # noqa: PLR0912 (a case for each kind of write)
        match write:
            case MoveJob(job, rev, fact, values):
                self._job(job, rev)
                self._start(job)
                self.values[job.job_id] = values
                self.facts += [] if fact is None else [job.job_id]
            case MoveSemaphore():
                self._semaphore(write)
            case CountChild():
                self._child(write)
            case InsertActivity(activity):
                self._birth(activity)
            case MoveActivity(activity, rev):
                self._activity(activity, rev)
            case InsertMessage(message):
                assert message.guid not in self.messages, "a message is inserted that is there"
                assert message.job_id in self.jobs
                self._message(message, None)
            case MoveMessage(message, digits):
                self._message(message, digits)
            case MoveAttempt():
                self._attempt(write)
            case InsertAttempt(job_id, _attempt, status, reason, _guid, unit) if unit:
                assert (job_id in self.jobs, status in expected.ATTEMPT_BIRTHS, bool(reason)) == (True,) * 3
            case InsertEffect(row, lease):
                assert row.exec_id not in self.effects, "an effect begins that is there"
                assert (row.state, row.phase, row.outcome, row.calls) == ("COMMITTED", "CALLING", None, 1)
                assert row.lease_id == lease.lease_id
                self.effects[row.exec_id] = row
            case MoveEffect():
                self._effect(write)
            case InsertAttempt(job_id, attempt, status, reason):
                assert self.leases[job_id] is None, "an attempt is made beside one that holds the job"
                assert (job_id, attempt) not in self.attempts
                assert status in expected.ATTEMPT_BIRTHS
                assert reason
            case AskDescendants(job_id, before, asked, at, ends_at):
                assert self.parents[job_id], "children are asked that nobody has"
                assert {(state, asked) for state in before} <= set(expected.JOB_MOVES)
                assert at <= ends_at
            case InsertChild(job):
                assert job.job_id not in self.born
                assert job.parent_job_id in self.jobs
                self.born.add(job.job_id)
            case DropActivities(job_id, how_many):
                self._drop(job_id, how_many)
            case DropInbox(job_id, keep, signals):
                self._drop_inbox(job_id, keep, signals=signals)
            case WithdrawDirectives(job_id):
                assert job_id in self.jobs
            case InsertRemote(step, place):
                self._birth(Activity(step.job_id, *place, "remote", step.state, step.ledger, 1, 1))
                assert (step.attempt_no, step.state) == (1, "DISPATCHING"), "it begins with a first directive"
                self.asked.append(step.step_id)
            case InsertOutbox(row):
                assert row.step_id in self.asked, "a directive goes out for a step that nobody has opened"
                self.asked.remove(row.step_id)
            case MoveRemote() | MoveOutbox():
                raise AssertionError("no request here is about a directive that is out")
            case KeepAct(act):
                assert self.jobs[act.name].state in expected.JOB_ENDS, "an act is kept where a fact could be"
            case InsertStep() | AppendFact() | PutValue() | KeepReport():
                pass
            case _:
                assert_never(write)

    def _effect(self, write: MoveEffect) -> None:
        """Judge an effect: who calls has a lease of his own, and what has an outcome stays as it is."""
        row, rev, lease = write
        before = self.effects[row.exec_id]
        assert before.rev == rev == row.rev - 1
        assert before.outcome is None, "an effect changes that is over"
        assert (before.phase, row.phase) in expected.EFFECT_MOVES, f"{before.phase} became {row.phase}"
        assert (row.state, row.phase) in (("COMMITTED", row.phase), ("DONE", "ENDED"))
        assert (row.outcome is not None) == (row.ended_at is not None) == (row.phase == "ENDED")
        assert (row.occupies, row.args_hash, row.arguments) == (
            before.occupies,
            before.args_hash,
            before.arguments,
        )
        assert (lease is not None) == (row.lease_id != before.lease_id), "a call without a lease of its own"
        assert lease is None or row.phase == "CALLING"
        assert row.calls - before.calls == (before.phase == "RESTING" and row.phase == "CALLING")
        self.effects[row.exec_id] = row

    def _job(self, job: JobFacts, rev: int) -> JobFacts:
        before = self.jobs[job.job_id]
        assert before.state not in expected.JOB_ENDS, "a job that has ended is written"
        assert before.rev == rev == job.rev - 1
        assert job.state == before.state or (before.state, job.state) in expected.JOB_MOVES
        assert (job.state in expected.JOB_ENDS) == (job.completed_at is not None)
        assert job.ready_at is None or job.completed_at is None
        assert job.semaphore >= 0
        assert job.dimension - before.dimension in (0, 1)
        assert (job.ledger_form, job.parent) == (before.ledger_form, before.parent)
        self._count((job.job_id, ROOT), grows_as_activity(before.root_ledger, job.root_ledger), 0)
        self.jobs[job.job_id] = job
        return before

    def _start(self, job: JobFacts) -> None:
        """Judge the start message, whose ledger is a column of the job."""
        was = self.before[job.job_id]
        if grows_as_message(was.start_ledger, job.start_ledger) and START not in self.closers.get(
            job.job_id, ()
        ):
            self.closers.setdefault(job.job_id, []).append(START)
            assert job.semaphore == 0 != was.semaphore, "the start has closed a job that is not at zero"
        done = read(job.start_ledger).children > read(was.start_ledger).children
        assert not done or job.start_acked_at is not None, "step 2 of the start, and it is not acknowledged"

    def _semaphore(self, write: MoveSemaphore) -> None:
        job, rev, delta, hit, message, digits, activity, activity_rev = write
        before = self._job(job, rev)
        assert job.semaphore == before.semaphore + delta
        assert hit == (job.semaphore == 0 and delta != 0)
        closed = self._message(message, digits)
        assert closed == hit, "the closer digit and the semaphore disagree"
        if closed:
            self.closers.setdefault(job.job_id, []).append(message.guid)
        assert read(message.ledger).children > read(digits).children, "the semaphore moves without step 2"
        assert message.acked_at is not None
        if activity is not None:
            self._activity(activity, activity_rev)

    def _child(self, write: CountChild) -> None:
        group, rev, hit, message, digits = write
        before = self.activities[group.job_id, group.place]
        assert before.kind == "group"
        assert before.state == OPEN
        assert before.semaphore is not None
        assert group.semaphore == before.semaphore - 1 >= 0
        assert before.semaphore > (before.threshold or 0), "a group that is closed counts one more"
        assert hit == (group.semaphore == (group.threshold or 0))
        self._activity(group, rev)
        closed = self._message(message, digits)
        assert closed == hit
        if closed:
            self.closers.setdefault((group.job_id, group.place), []).append(message.guid)
        assert read(message.ledger).children == 1
        assert message.acked_at is not None

    def _birth(self, activity: Activity) -> None:
        assert (activity.job_id, activity.place) not in self.activities
        assert self.jobs[activity.job_id].state not in expected.JOB_ENDS
        births = expected.REMOTE_BIRTHS if activity.kind == "remote" else expected.ACTIVITY_BIRTHS
        assert activity.state in births
        assert activity.rev == 1
        assert (activity.kind == "group") == (activity.semaphore is not None)
        self._count((activity.job_id, activity.place), grows_as_activity(0, activity.ledger), 0)
        self.activities[activity.job_id, activity.place] = activity

    def _activity(self, activity: Activity, rev: int) -> None:
        before = self.activities[activity.job_id, activity.place]
        assert before.rev == rev == activity.rev - 1
        if before.state in expected.ACTIVITY_ENDS:
            assert activity._replace(ledger=0, rev=0) == before._replace(ledger=0, rev=0)
            assert activity.ledger - before.ledger in LEARNT, "more than a row may learn when it has ended"
        assert activity.state == before.state or (before.state, activity.state) in expected.ACTIVITY_MOVES
        assert (activity.kind, activity.threshold, activity.mode) == (
            before.kind,
            before.threshold,
            before.mode,
        )
        self._count((activity.job_id, activity.place), grows_as_activity(before.ledger, activity.ledger), 0)
        self.activities[activity.job_id, activity.place] = activity

    def _message(self, message: Message, digits: int | None) -> bool:
        before = self.messages.get(message.guid)
        if before is not None:
            assert digits is None or before.ledger == digits, "guarded by digits that are not there"
            assert before.acked_at is None, "a message that is acknowledged is written"
            assert message.job_id == before.job_id
            assert message.redeliveries - before.redeliveries in (0, 1)
        old = 0 if before is None else before.ledger
        if read(old).entry == 0 != read(message.ledger).entry:
            of_root = message.kind == "resume" and message.name in ("again", "cancel")
            where: Any = ROOT if of_root else message.place
            self._count((message.job_id, where), 0, 1)
        self.messages[message.guid] = message
        return grows_as_message(old, message.ledger)

    def _count(self, place: Any, counted: int, entered: int) -> None:
        if counted or entered:
            both = self.entries.setdefault(place, [0, 0])
            both[0] += counted
            both[1] += entered

    def _attempt(self, write: MoveAttempt) -> None:
        lease = self.leases[write.job_id]
        assert lease is not None
        assert (write.attempt, write.lease_id, write.before, write.live) == (
            lease.attempt,
            lease.lease_id,
            lease.status,
            lease.live,
        )
        assert (write.before, write.status) in expected.ATTEMPT_MOVES
        assert (write.status == "ABORTED") == (write.reason is not None)
        self.leases[write.job_id] = None

    def _drop(self, job_id: str, how_many: int) -> None:
        opened = [key for key, row in self.activities.items() if key[0] == job_id and is_open(row)]
        assert len(opened) == how_many
        for key in opened:
            row = self.activities[key]
            self.activities[key] = row._replace(state="CANCELLED", rev=row.rev + 1)

    def _drop_inbox(self, job_id: str, keep: tuple[str, str], *, signals: bool) -> None:
        for guid, message in list(self.messages.items()):
            mine = message.job_id == job_id and guid not in keep
            if mine and message.acked_at is None and (signals or message.kind != "signal"):
                self.messages[guid] = message._replace(acked_at=1)

    def _ended(self, job: JobFacts) -> None:
        """Judge a job that this plan has ended: nothing is left open, and its history says why.

        A message has closed it, unless the job has failed because nothing can be counted any more.
        """
        assert job.semaphore == 0
        assert job.job_id in self.closers or self.values[job.job_id].error_code == "LEDGER_CEILING"
        assert self.leases[job.job_id] is None
        assert job.job_id in self.facts
        assert not [key for key, row in self.activities.items() if key[0] == job.job_id and is_open(row)]
        left = [
            each.guid
            for each in self.messages.values()
            if each.job_id == job.job_id and each.acked_at is None
        ]
        assert not left, f"{left} wait for a job that has ended"
