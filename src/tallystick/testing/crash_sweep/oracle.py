"""The judge: compares the tables with the facts, by plain SQL and without any code of the engine.

It works on a copy of the files, so that looking changes nothing: opening the original would already recover
its log.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from tallystick.testing.crash_sweep import facts
from tallystick.testing.crash_sweep.place import Place
from tallystick.testing.crash_sweep.statements import sql


class Wrong(StrEnum):
    """What can be wrong with the books."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    STUCK = "stuck"
    BROKEN = "broken"


class Finding(NamedTuple):
    """One thing that must not be."""

    wrong: Wrong
    text: str


class JobBook(NamedTuple):
    """A row of jobs."""

    job_id: str
    state: str
    handler: str
    label: str
    result: str | None
    error_code: str | None
    semaphore: int
    start_ledger: int
    attempt: int
    ready_at: int | None
    hold: str | None
    completed_at: int | None
    key: str | None
    head_n: int
    head_hash: bytes

    @property
    def final(self) -> bool:
        """Tell whether the job has ended."""
        return self.state in facts.FINAL_STATES


class AttemptBook(NamedTuple):
    """A row of attempts."""

    job_id: str
    attempt: int
    status: str
    reason: str | None
    charged: int
    finished_at: int | None
    lease_expires_at: int


class StepBook(NamedTuple):
    """A row of steps that is its own event."""

    job_id: str
    n: int
    kind: str
    at: int
    attempt: int
    name: str
    occurrence: int
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    prev_hash: bytes
    event_hash: bytes

    @property
    def payload(self) -> str:
        """Return the text that the hash of such a row covers."""
        parts = (self.name, self.occurrence, self.state, self.ledger, self.result or "", self.error or "")
        return "\0".join(map(str, (*parts, self.notes or "")))


class EventBook(NamedTuple):
    """A row of events."""

    job_id: str
    n: int
    kind: str
    at: int
    attempt: int
    payload: str
    prev_hash: bytes
    event_hash: bytes


class Books:
    """All tables, read once."""

    def __init__(self, connection: apsw.Connection) -> None:
        def rows(name: str) -> list[tuple[Any, ...]]:
            return list(connection.execute(sql(name)))

        self.integrity = [row[0] for row in rows("integrity")]
        empty = not rows("has_books")[0][0]
        self.jobs = [] if empty else [JobBook(*row) for row in rows("jobs")]
        self.attempts: dict[str, list[AttemptBook]] = defaultdict(list)
        self.steps: dict[str, list[StepBook]] = defaultdict(list)
        self.events: dict[str, list[EventBook]] = defaultdict(list)
        for attempt in () if empty else rows("attempts"):
            self.attempts[attempt[0]].append(AttemptBook(*attempt))
        for step in () if empty else rows("steps"):
            self.steps[step[0]].append(StepBook(*step))
        for event in () if empty else rows("events"):
            self.events[event[0]].append(EventBook(*event))
        self.reservations = dict(() if empty else rows("reservations"))
        self.groups = [] if empty else rows("groups")
        self.messages = [] if empty else rows("messages")
        self.stale = {} if empty else {(job, attempt): count for job, attempt, count in rows("stale_reports")}
        self.effects: dict[tuple[str, str], tuple[int, str]] = {}
        if not empty and rows("has_effects")[0][0]:
            self.effects = {
                (label, effect): (count, token) for label, effect, count, token in rows("effects")
            }


def read(place: Place) -> Books:
    """Read the books from a copy of the files."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        for suffix in ("", "-wal"):
            source = place.database.with_name(place.database.name + suffix)
            if source.exists():
                shutil.copyfile(source, Path(folder, f"copy.db{suffix}"))
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with closing(apsw.Connection(str(Path(folder, "copy.db")), flags=flags)) as connection:
            return Books(connection)


def judge(place: Place, books: Books, *, finished: bool, wall_minus_boot_ms: int) -> list[Finding]:
    """Return everything that is wrong: always true things at any moment, the rest when all should be done."""
    found = [*_acknowledged(place, books), *_effects(books), *_within(books)]
    found += [Finding(Wrong.BROKEN, f"integrity_check: {text}") for text in books.integrity if text != "ok"]
    found += [Finding(Wrong.BROKEN, text) for text in _groups(books, finished=finished)]
    calls = place.calls()
    for job in books.jobs:
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in _chain(job, books)]
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in _digits(job, books)]
        attempts = books.attempts[job.job_id]
        late = _attempts(job, attempts, wall_minus_boot_ms)
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in late]
        found += [Finding(Wrong.LOST, f"{job.label}: {text}") for text in _results(job, books, calls)]
        if finished:
            found += _ending(job, books)
    return found


def _acknowledged(place: Place, books: Books) -> Iterator[Finding]:
    """Find submissions that were acknowledged and are not there."""
    known = {job.job_id: job for job in books.jobs}
    for label, job_id in place.acknowledged():
        if job_id not in known or known[job_id].label != label:
            yield Finding(Wrong.LOST, f"{label}: acknowledged as {job_id} and not there")


def _effects(books: Books) -> Iterator[Finding]:
    """Find effects without their marker, markers without their effect, and whatever is there twice."""
    for (label, effect), (count, _token) in books.effects.items():
        if count > 1:
            yield Finding(Wrong.DUPLICATED, f"{label}: the effect {effect} happened {count} times")
    jobs = {job.job_id: job for job in books.jobs}
    marked = {
        (jobs[step.job_id].label, step.name): step
        for steps in books.steps.values()
        for step in steps
        if step.kind == "tx" and step.state == "SUCCEEDED" and step.job_id in jobs
    }
    for label, effect in marked.keys() - books.effects.keys():
        yield Finding(Wrong.LOST, f"{label}: {effect} is marked as done and its effect is not there")
    for label, effect in books.effects.keys() - marked.keys():
        if effect != facts.BOOKED:
            yield Finding(Wrong.BROKEN, f"{label}: the effect {effect} is there without its marker")
    labels = Counter(job.label for job in books.jobs)
    for label, count in labels.items():
        if count > 1:
            yield Finding(Wrong.DUPLICATED, f"{label}: {count} jobs for one submission")
    for job in books.jobs:
        if job.key is not None and books.reservations.get(job.key) != job.job_id:
            yield Finding(Wrong.DUPLICATED, f"{job.label}: the key {job.key} belongs to another job")


def _within(books: Books) -> Iterator[Finding]:
    """Find jobs that were submitted inside a transaction and do not share its fate."""
    labels = {job.label for job in books.jobs}
    booked = {label for label, effect in books.effects if effect == facts.BOOKED}
    shipped = {facts.receipt_of(label) for label, effect in books.effects if effect == facts.SHIPPED}
    for label in (booked | shipped) - labels:
        yield Finding(Wrong.LOST, f"{label}: the transaction is there and the job it submitted is not")
    receipts = {job.label for job in books.jobs if job.handler == "receipt"}
    for label in receipts - booked - shipped:
        yield Finding(Wrong.BROKEN, f"{label}: a job is there and the transaction that submitted it is not")


def _chain(job: JobBook, books: Books) -> Iterator[str]:
    """Say where facts are not numbered 1, 2, 3 ... or do not name the hash of the one before."""
    history: list[EventBook | StepBook] = [*books.events[job.job_id], *books.steps[job.job_id]]
    history.sort(key=lambda fact: fact.n)
    numbers = [fact.n for fact in history]
    if numbers != list(range(1, len(history) + 1)):
        yield f"facts are numbered {numbers}"
        return
    before = b""
    for fact in history:
        text = f"{fact.job_id}\0{fact.n}\0{fact.kind}\0{fact.at}\0{fact.attempt}\0{fact.payload}\0"
        if fact.prev_hash != before or fact.event_hash != sha256(text.encode() + before).digest():
            yield f"the chain breaks at fact {fact.n} ({fact.kind})"
        before = fact.event_hash
    if job.final and (job.head_n, job.head_hash) != (len(history), before):
        yield f"the job ends its chain at {job.head_n}, the facts end at {len(history)}"
    claims = sum(fact.kind == "claim" for fact in history)
    if claims != len(books.attempts[job.job_id]):
        yield f"{claims} claims are on record for {len(books.attempts[job.job_id])} attempts"


def _digits(job: JobBook, books: Books) -> Iterator[str]:
    """Say where digits or semaphore differ from what the rows mean."""
    entered = facts.ENTERED_DIGITS if job.attempt else facts.QUEUED_DIGITS
    expected = facts.CLOSED_DIGITS if job.final else entered
    if f"{job.start_ledger:015d}" != expected:
        yield f"a {job.state} job with the digits {job.start_ledger:015d} instead of {expected}"
    if job.semaphore != (0 if job.final else 1):
        yield f"a {job.state} job with semaphore {job.semaphore}"
    for step in books.steps[job.job_id]:
        if f"{step.ledger:015d}" != facts.STEP_DIGITS:
            yield f"the step {step.name} has the digits {step.ledger:015d}"


def _attempts(job: JobBook, attempts: list[AttemptBook], wall_minus_boot_ms: int) -> Iterator[str]:
    """Say where more than one attempt is live or has committed, or one did so after its lease."""
    numbers = [attempt.attempt for attempt in attempts]
    if numbers != list(range(1, job.attempt + 1)):
        yield f"attempts are numbered {numbers}, the job counts {job.attempt}"
    live = sum(attempt.status in facts.LIVE_ATTEMPTS for attempt in attempts)
    committed = [attempt for attempt in attempts if attempt.status in facts.COMMITTED_ATTEMPTS]
    if live > (0 if job.final else 1):
        yield f"a {job.state} job with {live} live attempts"
    if len(committed) != (job.state == "SUCCEEDED"):
        yield f"a {job.state} job with {len(committed)} committed attempts"
    for attempt in committed:
        ended_at = (attempt.finished_at or 0) - wall_minus_boot_ms
        # Both clocks are read in whole milliseconds, and not at the same instant.
        if ended_at > attempt.lease_expires_at + 5:
            late = ended_at - attempt.lease_expires_at
            yield f"attempt {attempt.attempt} committed {late} ms after its lease"


def _results(job: JobBook, books: Books, calls: set[tuple[str, str, str]]) -> Iterator[str]:
    """Say where a result is not what the step returned, what later calls were given and the job returned."""
    for step in books.steps[job.job_id]:
        if step.kind == "step" and step.state == "SUCCEEDED":
            token = (step.result or "").strip('"')
            if (job.label, step.name.partition(".")[0], token) not in calls:
                yield f"{step.name} is recorded with a result that no call returned"
    kept = {step.name: step.result for step in books.steps[job.job_id] if step.kind == "step"}
    source = {"order": "quote", "crawl": "measure", "slow": "linger"}.get(job.handler)
    if source is None:
        return
    if job.state == "SUCCEEDED" and job.result != kept.get(source):
        yield f"the job returned {job.result}, and {source} is recorded with {kept.get(source)}"
    for effect in facts.ENDINGS[job.handler][2]:
        if (job.label, effect) in books.effects:
            _count, token = books.effects[job.label, effect]
            if f'"{token}"' != kept.get(source):
                yield f"{effect} was given {token}, and {source} is recorded with {kept.get(source)}"


def _ending(job: JobBook, books: Books) -> Iterator[Finding]:
    """Find what is not done, or not as the facts say, when everything should be."""
    if not job.final:
        where = f"hold {job.hold}" if job.hold else f"ready_at {job.ready_at}"
        yield Finding(Wrong.STUCK, f"{job.label}: still {job.state}, attempt {job.attempt}, {where}")
        return
    state, code, effects = facts.ENDINGS[job.handler]
    if (job.state, job.error_code) != (state, code):
        yield Finding(Wrong.LOST, f"{job.label}: ended {job.state} {job.error_code}, not {state} {code}")
    for effect in effects:
        if (job.label, effect) not in books.effects:
            yield Finding(Wrong.LOST, f"{job.label}: ended without its effect {effect}")
    if job.handler == "poison" and job.attempt != facts.POISON_BUDGET:
        yield Finding(
            Wrong.BROKEN, f"{job.label}: {job.attempt} attempts, its budget is {facts.POISON_BUDGET}"
        )


def _groups(books: Books, *, finished: bool) -> Iterator[str]:
    """Say where a group's semaphore is not what its markers say, or not one message closed it."""
    for job_id, semaphore in books.groups:
        digits = [f"{ledger:015d}" for owner, _guid, ledger in books.messages if owner == job_id]
        counted = sum(text in {facts.COUNTED_DIGITS, facts.CLOSER_DIGITS} for text in digits)
        closers = digits.count(facts.CLOSER_DIGITS)
        if semaphore != len(digits) - counted:
            yield f"the group has semaphore {semaphore} and {len(digits) - counted} open messages"
        if closers != (semaphore == 0):
            yield f"the group has semaphore {semaphore} and {closers} closers"
        if finished and semaphore:
            yield f"the group is still open: {semaphore}"
