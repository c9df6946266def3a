"""The books of jobs, recomputed from their facts: chains, moves, digits, semaphores, and what users see.

A check reads a page of jobs and a page of facts at a time, so its memory does not grow with the store, nor
with the history of a job. It takes no lock: a job that changes while it is read is read again, so what is
reported is true of one moment. What nobody can see from the rows is the end of a history that was cut off
behind the last move of a job that has not ended; everything before is held by the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from tallystick.clock import Clock
from tallystick.core.chain import GENESIS, StepFact, event_hash, read_step_payload
from tallystick.core.consistency import contradictions
from tallystick.core.derive import (
    AbortReason,
    AttemptFacts,
    ViewPolicy,
    agrees,
    attempts_allowed,
    charged_since_progress,
    job_view,
)
from tallystick.core.digits import ActivityLedger, GuidLedger
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState, StepState
from tallystick.core.limits import HISTORY_WARN_RECORDS
from tallystick.core.machine import Machine
from tallystick.errors import LedgerCorrupt
from tallystick.store.api import Event, Store
from tallystick.store.inspection import AttemptRow, Book, Inspection

FINDINGS_KEPT_MAX: Final = 100

_BOOKS_PAGE: Final = 200
_FACTS_PAGE: Final = 100
_READS_MAX: Final = 5
_INLINE: Final = frozenset({"step", "tx"})
_LISTED: Final = {
    machine.name: frozenset((move.source.value, move.target.value) for move in machine.transitions)
    for machine in (JOB, ATTEMPT)
}


class Finding(NamedTuple):
    """One thing that does not agree: in which job, by which check, in words."""

    job_id: str
    check: str
    message: str


@dataclass(slots=True)
class Audit:
    """What a check has seen and found; of many findings the first ones are kept, and all are counted."""

    jobs: int = 0
    facts: int = 0
    findings_total: int = 0
    findings: list[Finding] = field(default_factory=list)
    long_total: int = 0
    long_histories: list[tuple[str, int]] = field(default_factory=list)

    def add(self, checked: Checked) -> None:
        """Count one job in."""
        self.jobs += 1
        self.facts += checked.facts
        self.findings_total += len(checked.findings)
        self.findings += checked.findings[: FINDINGS_KEPT_MAX - len(self.findings)]
        if checked.facts >= HISTORY_WARN_RECORDS:
            self.long_total += 1
            if len(self.long_histories) < FINDINGS_KEPT_MAX:
                self.long_histories.append((checked.job_id, checked.facts))


class Checked(NamedTuple):
    """What the check of one job gave."""

    job_id: str
    facts: int
    findings: list[Finding]


def audit(
    store: Store, clock: Clock, *, jobs_max: int | None = None, on_page: Callable[[Audit], None] | None = None
) -> Audit:
    """Check the books of the newest jobs, or of all, and return what was found."""
    inspection = store.inspect()
    done = Audit()
    for book in _books(inspection, jobs_max):
        done.add(check_job(inspection, book, clock))
        if on_page is not None and done.jobs % _BOOKS_PAGE == 0:
            on_page(done)
    return done


def check_job(inspection: Inspection, book: Book, clock: Clock) -> Checked:
    """Check one job; what is found is only believed when the job stood still meanwhile."""
    now: Book | None = book
    checked = Checked(book.job_id, 0, [])
    for _ in range(_READS_MAX):
        if now is None:
            break
        book, checked = now, _check(inspection, now, clock)
        if not checked.findings:
            break
        now = inspection.book(book.job_id)
        if now is not None and now.rev == book.rev:
            return checked
    return checked._replace(findings=[])


def _books(inspection: Inspection, jobs_max: int | None) -> Iterator[Book]:
    after, left = None, jobs_max
    while left is None or left > 0:
        page = inspection.books(after=after, limit=_BOOKS_PAGE if left is None else min(left, _BOOKS_PAGE))
        if not page:
            return
        yield from page
        after = page[-1].job_id
        left = None if left is None else left - len(page)


def _facts(inspection: Inspection, job_id: str) -> Iterator[Event]:
    after, more = 0, True
    while more:
        page = inspection.facts(job_id, after=after, limit=_FACTS_PAGE)
        yield from page
        more = len(page) == _FACTS_PAGE
        after = page[-1].n if page else after


def _check(inspection: Inspection, book: Book, clock: Clock) -> Checked:
    history = _History(book)
    for fact in _facts(inspection, book.job_id):
        history.read(fact)
    history.close()
    attempts = inspection.attempts(book.job_id)
    findings = history.findings
    findings += _attempts_agree(book, attempts, history)
    findings += _digits_agree(book)
    findings += _view_agrees(book, attempts, history, clock)
    return Checked(book.job_id, history.n, findings)


class _History:
    """The facts of one job, folded as they come: where the chain stands and what they say happened."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.findings: list[Finding] = []
        self.n = 0
        self.attempts: dict[int, str] = {}
        self.progressed: set[int] = set()
        self._head = GENESIS
        self._head_met = book.head_n == 0
        self._state = ""

    def read(self, fact: Event) -> None:
        """Take the next fact."""
        self._link(fact)
        step = read_step_payload(fact.payload)
        if step is not None:
            self.progressed.add(fact.attempt)
            self._step(fact, step)
            return
        try:
            data = msgspec.json.decode(fact.payload, type=dict[str, object])
        except msgspec.DecodeError:
            self._find("chain", f"fact {fact.n} ({fact.type}) cannot be read")
            return
        for path, machine in ((data.get("job"), JOB), (data.get("attempt"), ATTEMPT)):
            if path is not None:
                self._move(fact, str(path).split(">"), machine)

    def close(self) -> None:
        """Compare the end of the history with the job's row."""
        book = self._book
        final = JobState(book.state) in JOB.final
        if not self._head_met or (final and book.head_n != self.n):
            self._find("chain", f"the job says its history ends with fact {book.head_n}, and it has {self.n}")
        # The wish to end is on the row alone while an attempt runs; the fact that ends the job tells of both.
        asked = (self._state, book.state) == (JobState.IN_PROGRESS, JobState.CANCELLING)
        if self._state != book.state and not asked:
            self._find("state", f"the facts end in {self._state or 'nothing'}, the job says {book.state}")

    def _link(self, fact: Event) -> None:
        if fact.n != self.n + 1:
            self._find("chain", f"fact {self.n + 1} is missing")
        elif fact.prev_hash != self._head:
            self._find("chain", f"fact {fact.n} does not follow the one before it")
        made = event_hash(fact.prev_hash, fact.job_id, fact.n, fact.type, fact.at, fact.attempt, fact.payload)
        if made != fact.event_hash:
            self._find("chain", f"fact {fact.n} ({fact.type}) was changed after it was written")
        self.n, self._head = fact.n, fact.event_hash
        if fact.n == self._book.head_n:
            self._head_met = fact.event_hash == self._book.head_hash

    def _step(self, fact: Event, step: StepFact) -> None:
        label = f"{step.name}#{step.occurrence}"
        try:
            ledger = ActivityLedger(step.ledger)
        except LedgerCorrupt as error:
            self._find("digits", f"{label}: {error.message}")
            return
        for contradiction in contradictions(ledger):
            self._find("digits", f"{label}: {ledger.text}: {contradiction}")
        if fact.type in _INLINE and not ledger.get("children_spawned"):
            self._find("digits", f"{label} is recorded and {ledger.text} says it is not complete")
        if (step.result is None) == (step.error is None) or (step.state == StepState.SUCCEEDED) != (
            step.error is None
        ):
            self._find("state", f"{label} is {step.state} and its result or error says otherwise")

    def _move(self, fact: Event, path: list[str], machine: Machine[JobState] | Machine[AttemptState]) -> None:
        """Follow the moves that a fact names, each of which the machine must list."""
        is_job = machine is JOB
        before = self._state if is_job else self.attempts.get(fact.attempt, "")
        if path[0] != (before or machine.start.value):
            self._find(
                "state", f"fact {fact.n} moves the {machine.name} from {path[0]}, it was {before or 'new'}"
            )
        for move in pairwise(path):
            if move not in _LISTED[machine.name]:
                self._find("state", f"fact {fact.n}: no {machine.name} may move from {move[0]} to {move[1]}")
        if is_job:
            self._state = path[-1]
        else:
            self.attempts[fact.attempt] = path[-1]

    def _find(self, check: str, message: str) -> None:
        # One broken job must not fill the memory; where it begins is what matters.
        if len(self.findings) < FINDINGS_KEPT_MAX:
            self.findings.append(Finding(self._book.job_id, check, message))


def _attempts_agree(book: Book, attempts: list[AttemptRow], history: _History) -> list[Finding]:
    found = []
    if [row.attempt for row in attempts] != list(range(1, book.attempt + 1)):
        found.append(f"the job counts {book.attempt} attempts, there are {len(attempts)} rows")
    for row in attempts:
        told = history.attempts.get(row.attempt)
        if told != row.status:
            found.append(f"attempt {row.attempt} is {row.status}, the facts say {told or 'nothing of it'}")
    return [Finding(book.job_id, "attempts", message) for message in found]


def _digits_agree(book: Book) -> list[Finding]:
    """Check the digits of root and start message, and the semaphore, against where the job stands."""
    final = JobState(book.state) in JOB.final
    found = []
    try:
        root, start = ActivityLedger(book.root_ledger), GuidLedger(book.start_ledger)
    except LedgerCorrupt as error:
        return [Finding(book.job_id, "digits", f"root or start: {error.message}")]
    found += [f"root: {root.text}: {contradiction}" for contradiction in contradictions(root)]
    found += [f"start: {start.text}: {contradiction}" for contradiction in contradictions(start)]
    # A job that ends before anybody claims it is closed by its cancellation, and its start never enters.
    never_begun = book.state == JobState.CANCELLED and book.attempt == 1 and book.ledger_form > 0
    if bool(start.get("entry")) != bool(book.attempt) and not never_begun:
        found.append(f"start: {start.text} after {book.attempt} attempts")
    # A start whose segment ended in a wait is done with: another message closes the job, or a cancellation.
    passed_on = start.children_spawned and not start.closed_job
    cancelled = book.state == JobState.CANCELLED and bool(root.get("tasks_done")) and book.ledger_form > 0
    if not (passed_on or cancelled) and (final != start.closed_job or final != start.tasks_done):
        found.append(f"start: {start.text} in a job that is {book.state}")
    if book.ledger_form > 0 and start.tasks_done and not root.get("tasks_done"):
        found.append(f"root: {root.text} in a job that its start has closed")
    findings = [Finding(book.job_id, "digits", message) for message in found]
    expected = 0 if final else book.open_activities
    if book.semaphore != expected:
        message = f"the semaphore is {book.semaphore}, open obligations are {expected}"
        findings.append(Finding(book.job_id, "semaphore", message))
    return findings


def _view_agrees(book: Book, attempts: list[AttemptRow], history: _History, clock: Clock) -> list[Finding]:
    """Derive what users see from the attempts and compare it with the stored state."""
    epoch = clock.epoch()
    facts = [
        AttemptFacts(
            AttemptState(row.status),
            # A lease of an earlier boot protects nobody.
            row.lease_expires_at if row.lease_epoch == epoch else 0,
            row.charged,
            row.attempt in history.progressed,
            None if row.reason is None else AbortReason(row.reason),
        )
        for row in attempts
    ]
    allowed = attempts_allowed(book.options)
    if allowed is None:
        return [Finding(book.job_id, "options", "what the job keeps of its submission cannot be read")]
    state = JobState(book.state)
    if state not in JOB.final and facts and facts[-1].reason is AbortReason.ERROR:
        # The workflow's own retry policy has decided to go on; it is code and not in the row.
        allowed = max(allowed, charged_since_progress(facts) + 1)
    open_waits = max(0, book.open_activities - 1)
    view = job_view(facts, open_waits, clock.boot_ms(), ViewPolicy(allowed))
    if agrees(state, view):
        return []
    return [Finding(book.job_id, "view", f"the job is {book.state} and its attempts say {view.value}")]
