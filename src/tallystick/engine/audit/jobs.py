"""The books of jobs, recomputed from their facts and rows: chains, moves, digits, semaphores, closers, views.

A check reads a page of jobs, of facts, of activities and of messages at a time, so its memory does not grow
with the store, nor with the steps and messages of a job; of a job's own waits and groups it keeps some words
each. It takes no lock. What does not agree is read again until it was seen twice with the same rows, so what
is reported is true of one moment. What the rows cannot show is the end of a history that was cut off behind
the last move of a job that has not ended; everything before is held by the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from tallystick.core.audit.book import (
    FINDINGS_KEPT_MAX,
    ActivityRow,
    AttemptRow,
    Book,
    Finding,
    Findings,
    StepRest,
    WholeJob,
)
from tallystick.core.audit.columns import Columns
from tallystick.core.audit.content import judge_content
from tallystick.core.audit.facts import History
from tallystick.core.audit.job_view import agrees, attempts_allowed
from tallystick.core.audit.letters import Letters
from tallystick.core.audit.protocols import judge_protocol, judge_protocol_rest, judge_remote
from tallystick.core.audit.rows import Rows
from tallystick.core.audit.step_rests import StepRests
from tallystick.core.audit.told import Account
from tallystick.core.effects.after_end import RESOLVED
from tallystick.core.effects.judging import AfterEnd, EffectsOfJob
from tallystick.core.effects.rows import answer_of
from tallystick.core.lifecycles import ATTEMPT, JOB, JobState, StepState
from tallystick.core.limits import HISTORY_WARN_RECORDS
from tallystick.core.pictures import Message, Place
from tallystick.core.queues.judging import WhenDue
from tallystick.core.remote.row_prints import of_remote
from tallystick.core.remote.rows import ProtocolPicture, ProtocolStep, place_of_step
from tallystick.engine.audit.kin import ancestors, judge_kin
from tallystick.engine.view import derive
from tallystick.errors import StoreError
from tallystick.store.api import Store, StoredEvent
from tallystick.store.inspection import Inspection

_BOOKS_PAGE: Final = 200
_FACTS_PAGE: Final = 100
_ROWS_PAGE: Final = 500
_MESSAGES_PAGE: Final = 50
_READS_MAX: Final = 5
# No turn is before the first, but a row may say so.
_BEFORE_ALL: Final[Place] = (-(2**63), "", 0)
_JOB_STATES: Final = frozenset(state.value for state in JOB.states)
_ATTEMPT_STATES: Final = frozenset(state.value for state in ATTEMPT.states)


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
    """What the check of one job gave; `rows` stands for all rows that may change while they are read."""

    job_id: str
    facts: int
    findings: list[Finding]
    rows: int


def audit(
    store: Store,
    *,
    jobs_max: int | None = None,
    since: int | None = None,
    on_page: Callable[[Audit], None] | None = None,
    is_enough: Callable[[], bool] = lambda: False,
) -> Audit:
    """Check the books of the newest jobs, or of all, and return what was found.

    With `since` only those are checked that were written since that instant. No further job is begun once
    `is_enough` says so.
    """
    inspection = store.inspect()
    # Which leases are live tells a job that is at work from one that is not, and it may be either.
    now = inspection.lease_clock()
    done = Audit()
    for book in _books(inspection, jobs_max):
        if since is not None and book.updated_at < since:
            continue
        done.add(check_job(inspection, book, now))
        if on_page is not None and done.jobs % _BOOKS_PAGE == 0:
            on_page(done)
        if is_enough():
            break
    return done


def check_job(inspection: Inspection, book: Book, now: tuple[str, int]) -> Checked:
    """Check one job; what is found is believed when it is found again in the same rows.

    Rows that were the same in two looks did not move between them, so all of them were true at once.
    """
    checked = _check(inspection, book, now)
    for _ in range(_READS_MAX):
        if not checked.findings:
            return checked
        again = inspection.book(book.job_id)
        if again is None:
            break
        before, checked = checked, _check(inspection, again, now)
        if checked.rows == before.rows:
            return checked._replace(findings=[each for each in checked.findings if each in before.findings])
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


def _facts(inspection: Inspection, job_id: str) -> Iterator[StoredEvent]:
    after, more = 0, True
    while more:
        page = inspection.facts(job_id, after=after, limit=_FACTS_PAGE)
        yield from page
        more = len(page) == _FACTS_PAGE
        after = page[-1].n if page else after


def _activities(inspection: Inspection, job_id: str) -> Iterator[ActivityRow]:
    after: Place = _BEFORE_ALL
    more = True
    while more:
        page = inspection.activities(job_id, after=after, limit=_ROWS_PAGE)
        yield from page
        more = len(page) == _ROWS_PAGE
        after = page[-1].activity.place if page else after


def _messages(inspection: Inspection, job_id: str) -> Iterator[Message]:
    after, more = "", True
    while more:
        page = inspection.messages(job_id, after=after, limit=_MESSAGES_PAGE)
        yield from page
        more = len(page) == _MESSAGES_PAGE
        after = page[-1].guid if page else after


def _step_rests(inspection: Inspection, job_id: str) -> Iterator[StepRest]:
    after: Place = _BEFORE_ALL
    more = True
    while more:
        page = inspection.step_rests(job_id, after=after, limit=_ROWS_PAGE)
        yield from page
        more = len(page) == _ROWS_PAGE
        after = page[-1].place if page else after


def _check(inspection: Inspection, book: Book, now: tuple[str, int]) -> Checked:
    """Check one job; rows of which the rules can make nothing are a finding, and the check goes on."""
    findings = Findings(book.job_id)
    try:
        return _judged(inspection, book, now, findings)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 (no rule was written for rows that were tampered with)
        findings.note("rows", f"nothing can be made of its rows: {type(error).__name__}: {error}")
        return Checked(book.job_id, 0, findings, hash((book, str(error))))


def _judged(inspection: Inspection, book: Book, now: tuple[str, int], findings: Findings) -> Checked:
    tried = inspection.all_attempts(book.job_id)
    attempts = tried.pop("", [])
    whole = inspection.whole(book.job_id)
    seen = hash((book, whole, tuple(attempts)))
    strange = {book.state} - _JOB_STATES | {row.status for row in attempts} - _ATTEMPT_STATES
    if whole is None or strange:
        if strange:
            # No rule speaks of such a row.
            named = ", ".join(strange)
            findings.note("state", f"the job or an attempt is in no state that there is: {named}")
        return Checked(book.job_id, 0, findings, seen)
    history = History(book, findings, inspection.trimmed(book.job_id) if book.dimension else None)
    for fact in _facts(inspection, book.job_id):
        history.read(fact)
    history.close(attempts)
    Columns(book, whole, history.said, attempts, findings).judge()
    if not (history.said.is_fork or book.dimension):
        judge_content(whole.born, findings)
    seen = hash((seen, judge_kin(inspection, book, whole, history.said, findings)))
    # Only a protocol job has steps of its own before a worker has claimed it.
    picture = inspection.protocol(book.job_id) if book.has_waited and not book.attempt else None
    if picture is not None:
        seen = hash((seen, _judge_protocol(inspection, picture, history.said, findings)))
        return Checked(book.job_id, history.facts, findings, seen)
    before = ancestors(inspection, whole)
    rests = StepRests(history.said, attempts, whole.rest.completed_at, before, findings)
    for rest in _step_rests(inspection, book.job_id):
        rests.take(rest)
        if rest.kind == "group" and rest.origin_job_id is not None:
            rests.compare_copy(rest, _origin(inspection, rest))
    rests.close(whole.rest.current_step_id)
    prints: dict[Place, str] = {}
    if rests.has_remotes:
        seen = hash((seen, _judge_remotes(inspection, book.job_id, history.said, prints, findings)))
    if tried or rests.effects or history.said.effects:
        about = (inspection, book, whole, attempts, tried, rests.effects, history.said, findings)
        seen = hash((seen, _judge_effects(*about)))
    seen = hash((seen, _judge_rows(inspection, book, whole, attempts, history, prints, findings)))
    _judge_view(book, attempts, now, findings)
    return Checked(book.job_id, history.facts, findings, seen)


def _judge_protocol(
    inspection: Inspection, picture: ProtocolPicture, said: Account, findings: Findings
) -> int:
    """Compare a protocol job with its messages, directives and steps; return what stands for these."""
    job_id = picture.job.job_id
    messages = list(_messages(inspection, job_id))
    directives = inspection.directives(job_id)
    judge_protocol(picture, messages, directives, said, findings)
    rests = list(_step_rests(inspection, job_id))
    for rest in rests:
        judge_protocol_rest(rest, findings)
    return hash((picture, *messages, *directives, *rests))


def _origin(inspection: Inspection, copy: StepRest) -> StepRest | None:
    """Return the group of which this one is a copy, if its job is there."""
    place = (copy.origin_dimension or 0, copy.name, copy.occurrence)
    before = (place[0], copy.name, copy.occurrence - 1)
    page = inspection.step_rests(copy.origin_job_id or "", after=before, limit=1)
    return next((rest for rest in page if rest.place == place), None)


def _judge_effects(
    inspection: Inspection,
    book: Book,
    whole: WholeJob,
    attempts: Sequence[AttemptRow],
    tried: dict[str, list[AttemptRow]],
    steps: set[Place],
    said: Account,
    findings: Findings,
) -> int:
    """Compare effects with their keys, and return what stands for these and the attempts at them."""
    born, ended_at = whole.born, whole.rest.completed_at
    keys = inspection.keys_of(born.job_id)
    owners = {attempt: began.owner for attempt, began in said.began.items()}
    finished = {row.attempt: row.finished_at for row in attempts}
    turns = {turn: finished.get(attempt) for turn, attempt in said.turned_by.items()}
    after = AfterEnd(ended_at, turns, partial(_resolved, inspection, born.job_id))
    answer = partial(_answer, inspection, born.job_id)
    about = (born.job_id, born.tenant_id, said.effects, owners, said.results, answer, after)
    told = EffectsOfJob(*about, findings, is_free=book.hold is None and book.state == JobState.IN_PROGRESS)
    told.judge(keys, tried, steps, said.turns_gone)
    return hash((*keys, *((unit, *rows) for unit, rows in tried.items())))


def _answer(inspection: Inspection, job_id: str, place: Place) -> str | None:
    """Return what the message says that tells a step what came of its effect; None if there is none."""
    found = inspection.message(answer_of(job_id, place))
    return None if found is None else found.payload


def _resolved(inspection: Inspection, job_id: str) -> frozenset[str]:
    """Return what acts say of effects of a job that ended after it."""
    return frozenset(inspection.acts_told(job_id, RESOLVED))


def _judge_remotes(
    inspection: Inspection, job_id: str, said: Account, prints: dict[Place, str], findings: Findings
) -> int:
    """Compare remote steps with their directives, note the fingerprints of those that were dropped."""
    home = inspection.home(job_id)
    directives = inspection.count_directives(job_id)
    seen = hash((home, directives))
    if home is None:
        return seen
    asked = 0
    for step in _remote_steps(inspection, job_id):
        seen = hash((seen, judge_remote(home, step, inspection.directive, findings)))
        asked += step.attempt_no or 0
        place = place_of_step(step.step_id)
        if place is not None and step.state == StepState.CANCELLED:
            prints[place] = of_remote(step)
    # Directives of turns that were trimmed stay with the job.
    if directives < asked or (directives > asked and not said.turns_gone):
        findings.note("outbox", f"{directives} directives are there, and its steps have asked {asked} times")
    return seen


def _remote_steps(inspection: Inspection, job_id: str) -> Iterator[ProtocolStep]:
    after: Place = _BEFORE_ALL
    more = True
    while more:
        page = inspection.remote_steps(job_id, after=after, limit=_ROWS_PAGE)
        yield from page
        more = len(page) == _ROWS_PAGE
        after = (place_of_step(page[-1].step_id) if page else None) or after


def _judge_rows(
    inspection: Inspection,
    book: Book,
    whole: WholeJob,
    attempts: list[AttemptRow],
    history: History,
    prints: dict[Place, str],
    findings: Findings,
) -> int:
    """Compare activities and messages, and return what stands for those that were read."""
    said = history.said
    rows = Rows(book, findings, attempts, said)
    letters = Letters(book, said, attempts, findings)
    is_owner_open = _is_owner_open(inspection, said)
    due = WhenDue(book, whole, attempts, said.due, findings, is_owner_open=is_owner_open)
    children: dict[str, int] = {}
    seen = 0
    if book.has_waited:
        groups = False
        for activity in _activities(inspection, book.job_id):
            seen = hash((seen, activity))
            groups = groups or activity.activity.kind == "group"
            rows.add_activity(activity)
            due.add_activity(activity.activity)
        for message in _messages(inspection, book.job_id):
            seen = hash((seen, message))
            if not letters.is_left(message) and rows.add_message(message):
                letters.take(message)
                due.add_message(message)
        children = inspection.open_children(book.job_id) if groups else children
    letters.close()
    due.close()
    rows.judge_dropped(said.dropped, prints)
    rows.close(history.told, children)
    return hash((seen, *children.items()))


def _is_owner_open(inspection: Inspection, said: Account) -> bool | None:
    """Tell whether what a job waits for is open that another does under the same key; None: it does not."""
    owner = said.effects.owner_of(said.due.effect) if said.due.effect else None
    if owner is None:
        return None
    keys = inspection.keys_of(owner.partition(":")[0])
    return any(key.is_open for key in keys if key.exec_id == owner)


def _judge_view(book: Book, attempts: list[AttemptRow], now: tuple[str, int], findings: Findings) -> None:
    """Derive what users see from the attempts and compare it with the stored state."""
    if attempts_allowed(book.options) is None:
        findings.note("options", "what the job keeps of its submission cannot be read")
        return
    try:
        view, state = derive(book, attempts, now), JobState(book.state)
    except ValueError as error:
        findings.note("state", f"the job or an attempt is in no state that there is: {error}")
        return
    if not agrees(state, view):
        findings.note("view", f"the job is {book.state} and its attempts say {view.value}")
