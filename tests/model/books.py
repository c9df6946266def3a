"""The durable part of a world: rows as the verbs see them, frozen, and what a plan makes of them.

A row is kept as it would stand in a store, except for what only tells one moment from another: revisions
are 1, instants are ranks, so that two histories that differ in nothing else are one state. A plan is written
here as a store writes it: every guard must find what was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from tallystick.core.chain import GENESIS
from tallystick.core.lifecycles import ATTEMPT, JOB, STEP
from tests.model import remote_steps
from tests.model.search import Violation

NOW, FUTURE = 1_000, 10**9
SIGNALS = 2
"""How many signals are looked at before all are: few, so that a verb may have to look again."""
WORDS = ("resume", "timer", "result")
MOVES = {machine: frozenset(machine.stored_moves) for machine in (JOB, STEP, ATTEMPT)}


class Past(NamedTuple):
    """What really happened to a job, counted beside its rows."""

    place: int = 0
    charged: int = 0
    done: int = 0
    ended: str = ""
    effects: int = 0
    intent: int = 0
    calls: int = 0
    wish: int = 0


class Book(NamedTuple):
    """One job with all its rows, and its past."""

    job: Any
    lease: Any
    activities: tuple[Any, ...]
    messages: tuple[Any, ...]
    past: Past = Past()
    remotes: remote_steps.Remotes = remote_steps.Remotes()


Books = tuple[Book, ...]


def newborn(core: Any, name: str, parent: tuple[str, str] | None) -> Any:
    """Return the row of a job that was submitted and never claimed."""
    home = parent or (None, None)
    about = (name, "QUEUED", 0, 0, NOW, None, 1, core.marks.OPENED, 0)
    return core.pictures.JobFacts(*about, None, None, None, 1, 1, *home, 0, 0)


class Desk:
    """All rows, spread out to be read and written."""

    def __init__(self, core: Any, books: Books, budget: int) -> None:
        self.core = core
        self.budget = budget
        self.pictures = core.pictures.Pictures()
        self.pasts: dict[str, Past] = {}
        for book in books:
            picture = core.pictures.Picture(book.job, book.lease)
            picture.activities = {each.place: each for each in book.activities}
            picture.messages = {each.guid: each for each in book.messages}
            remote_steps.spread(picture, book.remotes)
            self.pictures[book.job.job_id] = picture
            self.pasts[book.job.job_id] = book.past

    def freeze(self) -> Books:
        return tuple(self._frozen(self.pictures[name]) for name in sorted(self.pictures))

    def _frozen(self, picture: Any) -> Book:
        job = picture.job
        messages, inbox = _ranked(picture.messages.values())
        activities = tuple(
            each._replace(rev=1, attempt=each.attempt if each.kind == "group" else 0)
            for _, each in sorted(picture.activities.items())
        )
        row = job._replace(
            ready_at=_instant(job.ready_at),
            start_acked_at=_instant(job.start_acked_at),
            cancel_at=_instant(job.cancel_at),
            deadline_at=_instant(job.deadline_at),
            completed_at=_instant(job.completed_at),
            rev=1,
            inbox_end=inbox[0],
            inbox_at=inbox[1],
        )
        past, remotes = self.pasts[job.job_id], remote_steps.frozen(picture)
        return Book(row, picture.lease, activities, messages, past, remotes)

    # What a store reads for a request.

    def look(self, wants: Any, *, whole: bool = False, children: tuple[str, ...] = ()) -> Any:
        """Return the pictures that a request wants to see, and nothing else."""
        pictures = self.core.pictures.Pictures()
        full = self.pictures.get(wants.job_id)
        if full is None:
            return pictures
        picture = pictures[wants.job_id] = self.core.pictures.Picture(full.job, full.lease)
        picture.end = (0, GENESIS)
        if wants.open:
            picture.activities |= {each.place: each for each in full.open_activities()}
        for guid in wants.guids:
            self._add(picture, full, full.messages.get(guid))
        for name in wants.signals:
            found = _waiting(full, "signal", name)
            picture.whole = picture.whole and (whole or len(found) < SIGNALS)
            picture.messages |= {each.guid: each for each in (found if whole else found[:SIGNALS])}
        remote_steps.look(picture, full, wants._replace(remotes=wants.remotes or whole))
        if wants.begun:
            self._add_begun(picture, full)
        if wants.place in full.activities:
            picture.activities[wants.place] = full.activities[wants.place]
        if wants.early:
            picture.messages |= {each.guid: each for each in _waiting(full, "child")}
        picture.asked = frozenset((*wants.children, *children))
        picture.children = picture.asked & frozenset(self.pictures)
        if wants.lost is not None:
            options = f'{{"attempts_max":{self.budget}}}'
            picture.past = self.core.pictures.LostAttempts(0, options, self.pasts[wants.job_id].charged)
        if wants.ends:
            picture.has_open_children = bool(self._open_children(wants.job_id))
        if wants.ends and full.job.parent is not None:
            self._add_parent(pictures, full.job.parent)
        return pictures

    def _open_children(self, name: str) -> list[Any]:
        return [
            each
            for each in self.pictures.values()
            if each.job.parent_job_id == name and each.job.completed_at is None
        ]

    def _add_parent(self, pictures: Any, parent: tuple[str, str]) -> None:
        home, step = parent
        full = self.pictures[home]
        picture = pictures[home] = self.core.pictures.Picture(full.job, full.lease)
        place = self.core.pictures.group_place(step)
        if place in full.activities:
            picture.activities[place] = full.activities[place]
        self._add(picture, full, full.messages.get(self.core.pictures.join_of(home, step)))

    def look_at_drivers(self, name: str) -> Any:
        """Return the picture of a job that was put away: what is open, and what may drive it."""
        full = self.pictures[name]
        picture = self.core.pictures.Picture(full.job, full.lease)
        picture.activities = {each.place: each for each in full.open_activities()}
        self._add_begun(picture, full)
        if any(message.ledger for message in picture.messages.values()):
            return picture
        for kind in WORDS:
            picture.messages |= {each.guid: each for each in _waiting(full, kind)}
        for wait in {each.name for each in full.open_activities() if each.kind == "wait"}:
            picture.messages |= {each.guid: each for each in _waiting(full, "signal", wait)[:1]}
        return picture

    def _add_begun(self, picture: Any, full: Any) -> None:
        driver = full.lease.guid if full.lease is not None else ""
        begun = [each for each in full.messages.values() if each.acked_at is None and each.ledger]
        for message in (full.messages.get(driver), *begun, *_waiting(full, "resume")):
            self._add(picture, full, message)

    @staticmethod
    def _add(picture: Any, full: Any, message: Any) -> None:
        if message is None:
            return
        picture.messages[message.guid] = message
        if message.place in full.activities and not message.is_of_root:
            picture.activities[message.place] = full.activities[message.place]

    # What a store writes.

    def write(self, writes: Iterable[Any]) -> None:
        """Write a plan; a guard that finds anything else than what was looked at is a broken promise."""
        for write in writes:
            kind = type(write).__name__
            getattr(self, re.sub("([A-Z])", r"_\1", kind).lower(), self._plain)(write)
            if kind not in ("DropInbox", "InsertChild"):
                self.core.deciding.see(self.pictures, (write,))

    def _plain(self, write: Any) -> None:
        """Write what has no guard: a step or a fact, which is progress."""
        if type(write).__name__ == "InsertStep":
            self._progressed(write.step.fence.job_id)

    def _progressed(self, name: str) -> None:
        self.pasts[name] = self.pasts[name]._replace(charged=0)

    def _move_job(self, write: Any) -> None:
        before = self.pictures[write.job.job_id].job
        _guard(before.rev == write.rev == write.job.rev - 1, "the row of a job has another revision")
        _guard(
            write.job.cancel_at is None or write.job.cancel_at >= NOW, "a job is to end before it was asked"
        )
        _check_job(self.core, before, write.job)

    def _move_semaphore(self, write: Any) -> None:
        picture = self.pictures[write.job.job_id]
        before, after = picture.job, write.job
        _guard(before.rev == write.rev == after.rev - 1, "the row of a job has another revision")
        _guard(before.semaphore + write.delta == after.semaphore, "a semaphore moves by something else")
        hit = after.semaphore == 0 and write.delta != 0
        _guard(hit is write.hit, "a semaphore comes to zero and nobody says so, or the other way")
        _check_job(self.core, before, after)
        self._moved_message(write.message, write.digits)
        if write.activity is not None:
            self._moved_activity(write.activity, write.activity_rev)

    def _count_child(self, write: Any) -> None:
        before = self.pictures[write.group.job_id].activities[write.group.place]
        _guard((before.semaphore or 0) - 1 == write.group.semaphore, "a child counts for other than one")
        _guard((write.group.semaphore == before.threshold) is write.hit, "a group closes and nobody says so")
        _guard(before.state == "IN_PROGRESS", "a group that was joined or dropped is counted down")
        self._moved_activity(write.group, write.rev)
        if write.digits is None:
            self._insert_message(write)
            self.core.digits.GuidLedger(write.message.ledger)
        else:
            self._moved_message(write.message, write.digits)

    def _insert_activity(self, write: Any) -> None:
        activity = write.activity
        _guard(
            activity.place not in self.pictures[activity.job_id].activities, "an activity is inserted twice"
        )
        self.core.digits.ActivityLedger(activity.ledger)
        self._progressed(activity.job_id)

    def _move_activity(self, write: Any) -> None:
        before = self._moved_activity(write.activity, write.rev)
        if write.activity.attempt != before.attempt:
            self._progressed(before.job_id)

    def _moved_activity(self, after: Any, rev: int) -> Any:
        before = self.pictures[after.job_id].activities[after.place]
        _guard(before.rev == rev == after.rev - 1, "the row of an activity has another revision")
        _guard(after.ledger >= before.ledger, f"a ledger went back from {before.ledger} to {after.ledger}")
        self.core.digits.ActivityLedger(after.ledger)
        if before.state in STEP.final:
            learnt = after.ledger - before.ledger in (10**9, 10**8, 10**9 + 10**8)
            same = before._replace(ledger=0, rev=0) == after._replace(ledger=0, rev=0)
            _guard(learnt and same, "an activity that has ended changes")
        elif after.state != before.state:
            _guard((before.state, after.state) in MOVES[STEP], "no activity makes such a move")
        return before

    def _insert_remote(self, write: Any) -> None:
        known = write.place in self.pictures[write.step.job_id].activities
        _guard(not known, "a remote step is inserted twice")
        self.core.digits.ActivityLedger(write.step.ledger)
        self._progressed(write.step.job_id)

    def _move_remote(self, write: Any) -> None:
        before, after = self.pictures[write.step.job_id].remotes[write.place], write.step
        _guard(before.rev == write.rev == after.rev - 1, "the row of a remote step has another revision")
        _guard(after.ledger >= before.ledger, f"a ledger went back from {before.ledger} to {after.ledger}")
        _guard(before.state not in STEP.final, "a remote step that has ended changes")
        moved = before.state == after.state or (before.state, after.state) in MOVES[STEP]
        _guard(moved and after.state not in STEP.final, "no report makes such a move")

    def _insert_message(self, write: Any) -> None:
        known = write.message.guid in self.pictures[write.message.job_id].messages
        _guard(not known, "a message is stored twice")

    def _move_message(self, write: Any) -> None:
        self._moved_message(write.message, write.digits)

    def _moved_message(self, after: Any, digits: int) -> None:
        before = self.pictures[after.job_id].messages.get(after.guid)
        there = before is not None and before.ledger == digits and before.acked_at is None
        _guard(there, "a message has other digits, or is acknowledged")
        _guard(after.ledger >= digits, f"a ledger went back from {digits} to {after.ledger}")
        self.core.digits.GuidLedger(after.ledger)

    def _move_attempt(self, write: Any) -> None:
        name, lease = write.job_id, self.pictures[write.job_id].lease
        there = lease is not None and (lease.attempt, lease.lease_id) == (write.attempt, write.lease_id)
        _guard(
            there and (lease.status, lease.live) == (write.before, write.live),
            "an attempt ends that is another's",
        )
        _guard((write.before, write.status) in MOVES[ATTEMPT], "no attempt makes such a move")
        past = self.pasts[name]
        ended = (
            str(write.reason or "") if write.reason not in ("SUSPENDED", "HELD", "RELEASED") else past.ended
        )
        if write.reason == "EXPIRED":
            ended = past.ended
        charged = 0 if write.reason == "SUSPENDED" else past.charged + write.charged
        self.pasts[name] = past._replace(
            charged=charged, done=past.done + (write.status == "DONE"), ended=ended
        )

    def _insert_attempt(self, write: Any) -> None:
        picture = self.pictures[write.job_id]
        made = picture.lease is None and write.attempt == picture.job.attempt + 1
        _guard(made, "an attempt is made of a job that has one")
        self.pasts[write.job_id] = self.pasts[write.job_id]._replace(ended=str(write.reason))

    def _insert_child(self, write: Any) -> None:
        name = write.job.job_id
        _guard(name not in self.pictures, "a child is born twice")
        home = (write.job.parent_job_id, write.step)
        deadline_at = None if write.job.deadline_at is None else FUTURE
        born = newborn(self.core, name, home)._replace(deadline_at=deadline_at)
        self.pictures[name] = self.core.pictures.Picture(born)
        self.pasts[name] = Past()

    def _ask_descendants(self, write: Any) -> None:
        for picture in self._open_children(write.job_id):
            job = picture.job
            if job.state in write.before:
                cancel_at = write.at if picture.lease is None else write.ends_at
                asked = {"state": write.asked, "hold": None, "ready_at": None, "cancel_at": cancel_at}
                picture.job = job._replace(**asked, code=write.code, rev=job.rev + 1)
                _check_job(self.core, job, picture.job)
            self._ask_descendants(write._replace(job_id=job.job_id))

    def _drop_activities(self, write: Any) -> None:
        found = len(self.pictures[write.job_id].open_activities())
        _guard(found == write.how_many, f"{write.how_many} activities are to be dropped and {found} are open")

    def _drop_inbox(self, write: Any) -> None:
        messages = self.pictures[write.job_id].messages
        for message in list(messages.values()):
            kept = message.guid in write.keep or (message.kind == "signal" and not write.signals)
            if message.acked_at is None and not kept:
                messages[message.guid] = message._replace(acked_at=NOW)


def _guard(holds: bool, why: str) -> None:
    if not holds:
        raise Violation(why)


def _check_job(core: Any, before: Any, after: Any) -> None:
    _guard(before.state not in JOB.final, "a job that has ended changes")
    if before.state != after.state:
        _guard(
            (before.state, after.state) in MOVES[JOB], f"no job moves from {before.state} to {after.state}"
        )
    _guard(after.root_ledger >= before.root_ledger, "a root ledger went back")
    _guard(after.start_ledger >= before.start_ledger, "a start ledger went back")
    core.digits.ActivityLedger(after.root_ledger)
    core.digits.GuidLedger(after.start_ledger)


def _instant(at: int | None) -> int | None:
    return None if at is None else FUTURE if at > NOW else NOW


def _waiting(picture: Any, kind: str, name: str | None = None) -> list[Any]:
    """Return what waits in an inbox and is due, in the order of arrival."""
    found = [
        each
        for each in picture.messages.values()
        if each.kind == kind
        and each.acked_at is None
        and (name is None or each.name == name)
        and (each.due_at is None or each.due_at <= NOW)
    ]
    return sorted(found, key=lambda each: each.arrived)


def _ranked(messages: Iterable[Any]) -> tuple[tuple[Any, ...], tuple[int, int]]:
    """Return messages with ranks for instants, and the end of their inbox."""
    rows, waiting = [], []
    for each in messages:
        if each.acked_at is None:
            waiting.append(each)
        else:
            gone = each._replace(due_at=None, redeliveries=0, created_at=0, arrived=0, acked_at=NOW)
            rows.append(gone)
    newest = 0
    arrivals = {each.guid: n for n, each in enumerate(sorted(waiting, key=lambda m: m.arrived), 1)}
    for rank, each in enumerate(sorted(waiting, key=lambda m: (m.since, m.arrived)), 1):
        timer = each.due_at is not None
        due_at = None if each.due_at is None else FUTURE if each.due_at > NOW else rank
        at = 0 if timer else rank
        newest = max(newest, at)
        rows.append(each._replace(due_at=due_at, redeliveries=0, created_at=at, arrived=arrivals[each.guid]))
    return tuple(sorted(rows)), (len(waiting), newest)
