"""The judge: compares the tables with the facts, without any code of the engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from tests.crash.sweep import facts, forks, obligations
from tests.crash.sweep.books import AttemptBook, Books, EventBook, JobBook, StepBook
from tests.crash.sweep.place import Place


class Wrong(StrEnum):
    """What can be wrong with the books."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    STUCK = "stuck"
    BROKEN = "broken"


# What a cancellation is told when it is not too late, and what the job must be from then on.
_CANCELS = ("CANCELLING", "CANCELLED")


class Finding(NamedTuple):
    """One thing that must not be."""

    wrong: Wrong
    text: str


def judge(place: Place, books: Books, *, finished: bool, wall_minus_boot_ms: int) -> list[Finding]:
    """Return everything that is wrong: always true things at any moment, the rest when all should be done."""
    found = [*_acknowledged(place, books), *_sent(place, books), *_effects(books), *_within(books)]
    found += [Finding(Wrong.BROKEN, f"integrity_check: {text}") for text in books.integrity if text != "ok"]
    found += [Finding(Wrong.BROKEN, text) for text in forks.broken(books)]
    found += [Finding(Wrong.DUPLICATED, text) for text in forks.twice(books)]
    found += [Finding(Wrong.LOST, text) for text in forks.lost(place, books)]
    found += [Finding(Wrong.BROKEN, text) for text in (*_homeless(books), *_crowded(books))]
    calls = place.calls()
    for job in books.jobs:
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in _chain(job, books)]
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in _digits(job, books)]
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in obligations.check(job, books)]
        attempts = books.attempts[job.job_id]
        trimmed = [event.attempt for event in books.events[job.job_id] if event.kind == "claim"]
        first = min(trimmed) if books.trim_of(job.job_id).turns and trimmed else 1
        late = _attempts(job, attempts, first, wall_minus_boot_ms)
        found += [Finding(Wrong.BROKEN, f"{job.label}: {text}") for text in late]
        found += [Finding(Wrong.LOST, f"{job.label}: {text}") for text in _results(job, books, calls)]
        if finished:
            found += _ending(job, books)
    return [*found, *_planned(place, books)] if finished else found


def _planned(place: Place, books: Books) -> Iterator[Finding]:
    """Find ticks that were acknowledged and became no job; two jobs of one are found as duplicated."""
    made = {job.label for job in books.jobs}
    for label, job_id in place.acknowledged():
        if job_id == facts.PLANNED and label not in made:
            yield Finding(Wrong.LOST, f"{label}: its schedule was acknowledged, and its tick is no job")


def _acknowledged(place: Place, books: Books) -> Iterator[Finding]:
    """Find submissions that were acknowledged and are not there."""
    known = {job.job_id: job for job in books.jobs}
    for label, job_id in place.acknowledged():
        if job_id == facts.PLANNED:
            continue
        if job_id not in known or known[job_id].label != label:
            yield Finding(Wrong.LOST, f"{label}: acknowledged as {job_id} and not there")


def _sent(place: Place, books: Books) -> Iterator[Finding]:
    """Find signals and cancellations that were acknowledged and are not there, or are there twice."""
    jobs = {job.job_id: job for job in books.jobs}
    for job_id, id_, outcome in place.sent():
        job = jobs.get(job_id)
        if job is None or outcome == facts.DROPPED or id_ in facts.CONTROL_IDS:
            continue
        if id_ == facts.CANCEL_ID:
            if outcome in _CANCELS and job.state not in _CANCELS:
                yield Finding(
                    Wrong.LOST, f"{job.label}: its cancellation was acknowledged, and it is {job.state}"
                )
        elif f"{job_id}:{id_}" not in {message.guid for message in books.messages[job_id]}:
            yield Finding(Wrong.LOST, f"{job.label}: the signal {id_} was acknowledged and is not there")
    for job in books.jobs:
        signals = [(m.name, m.payload) for m in books.messages[job.job_id] if m.kind == "signal"]
        for (name, value), count in Counter(signals).items():
            if count > 1:
                yield Finding(
                    Wrong.DUPLICATED, f"{job.label}: the signal {name} {value} is there {count} times"
                )


def _effects(books: Books) -> Iterator[Finding]:
    """Find effects without their marker, markers without their effect, and whatever is there twice."""
    for (label, effect), (count, _token) in books.effects.items():
        if count > 1:
            yield Finding(Wrong.DUPLICATED, f"{label}: the effect {effect} happened {count} times")
    jobs = {job.job_id: job for job in books.jobs}
    marked = {
        (jobs[step.job_id].label, step.effect): step
        for steps in books.steps.values()
        for step in steps
        if step.kind == "tx" and step.state == "SUCCEEDED" and step.job_id in jobs
    }
    for label, effect in marked.keys() - books.effects.keys():
        yield Finding(Wrong.LOST, f"{label}: {effect} is marked as done and its effect is not there")
    gone = {job.label: books.trim_of(job.job_id).turns for job in books.jobs}
    for label, effect in books.effects.keys() - marked.keys():
        # The marker of a turn that is trimmed is gone with it.
        turn = int(effect.partition("@")[2] or 0)
        if effect != facts.BOOKED and turn >= gone.get(label, 0):
            yield Finding(Wrong.BROKEN, f"{label}: the effect {effect} is there without its marker")
    # A fork is no submission, and has the label of the job that it began with.
    labels = Counter(job.label for job in books.jobs if books.forks.get(job.job_id, (None,))[0] is None)
    for label, count in labels.items():
        if count > 1:
            yield Finding(Wrong.DUPLICATED, f"{label}: {count} jobs for one submission")
    for job in books.jobs:
        replaced = books.forks.get(job.job_id, (None, None))[1] is not None
        if job.key is not None and (books.reservations.get(job.key) == job.job_id) == replaced:
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
    """Say where facts are not numbered 1, 2, 3 ... or do not name the hash of the one before.

    Where turns were trimmed the log of removals says where the others begin.
    """
    trim = books.trim_of(job.job_id)
    history: list[EventBook | StepBook] = [*books.events[job.job_id], *books.steps[job.job_id]]
    history.sort(key=lambda fact: fact.n)
    numbers = [fact.n for fact in history]
    if numbers != list(range(trim.last_n + 1, trim.last_n + len(history) + 1)):
        yield f"facts are numbered {numbers}"
        return
    before = trim.head
    for fact in history:
        about = f"{fact.job_id}\0{fact.n}\0{fact.kind}\0{fact.at}\0{fact.attempt}\0"
        hashes = {sha256(f"{about}{text}\0".encode() + before).digest() for text in fact.payloads}
        if fact.prev_hash != before or fact.event_hash not in hashes:
            yield f"the chain breaks at fact {fact.n} ({fact.kind})"
        before = fact.event_hash
    last = trim.last_n + len(history)
    if job.final and (job.head_n, job.head_hash) != (last, before):
        yield f"the job ends its chain at {job.head_n}, the facts end at {last}"
    claims = sum(fact.kind == "claim" for fact in history)
    made = sum(attempt.made for attempt in books.attempts[job.job_id])
    if claims != made:
        yield f"{claims} claims are on record for {made} attempts"


def _digits(job: JobBook, books: Books) -> Iterator[str]:
    """Say where the digits of an inline step differ from what its row means: it counts its failures too."""
    copied = {(name, occurrence) for job_id, name, occurrence, _of in books.copies if job_id == job.job_id}
    tries = [(e.n, json.loads(e.payload)) for e in books.events[job.job_id] if e.kind == "try"]
    failed = [(n, (about["step"], about["occurrence"])) for n, about in tries]
    before: dict[tuple[str, int], int] = {}
    for step in sorted(books.steps[job.job_id], key=lambda one: one.n):
        place = (step.name, step.occurrence)
        if step.kind not in {"step", "tx"} or place in copied:
            continue
        # Those of an earlier turn stand before the row of that turn.
        failures = sum(each == place and before.get(place, 0) < n < step.n for n, each in failed)
        before[place] = step.n
        if f"{step.ledger:015d}" != f"{failures + 1:03d}{facts.STEP_DIGITS}":
            yield f"the step {step.name} has the digits {step.ledger:015d} after {failures} failures"


def _attempts(
    job: JobBook, attempts: list[AttemptBook], first: int, wall_minus_boot_ms: int
) -> Iterator[str]:
    """Say where more than one attempt is live or has committed, or one did so after its lease."""
    numbers = [attempt.attempt for attempt in attempts]
    if numbers != list(range(first, job.attempt + 1)):
        yield f"attempts are numbered {numbers} from {first} on, the job counts {job.attempt}"
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
    yield from _told(job, books)
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


def _told(job: JobBook, books: Books) -> Iterator[str]:
    """Say where a job that waited returned something else than it was told, or kept something else."""
    result = (job.result or "").strip('"')
    effect = {"approval": "approve", "family": "settle", "twins": "settle"}.get(job.handler)
    if effect is not None and job.state == "SUCCEEDED":
        _count, token = books.effects.get((job.label, effect), (0, None))
        if token != result:
            yield f"the job returned {result}, and {effect} was given {token}"
    if job.state == "SUCCEEDED" and result != facts.RESULTS.get(job.handler, result):
        yield f"the job returned {result} instead of {facts.RESULTS[job.handler]}"
    if job.handler == "rounds":
        words = [signal.value for signal in facts.SIGNALS["rounds"]]
        for turn, word in enumerate(words):
            _count, token = books.effects.get(
                (job.label, f"note_turn@{turn}" if turn else "note_turn"), (0, word)
            )
            if token != word:
                yield f"turn {turn + 1} was given {token} instead of {word}"
    if job.handler in {"family", "twins"} and job.state == "SUCCEEDED":
        expected = _joined(job, books)
        if result != expected:
            yield f"the job returned {result}, and its groups were joined with {expected}"


def _joined(job: JobBook, books: Books) -> str:
    """Return what a parent must return: the children that were counted when each group was joined."""
    counted = {m.guid for m in books.messages[job.job_id] if m.kind == "child" and m.entry}
    children = sorted(
        (child for child in books.jobs if child.parent == job.job_id), key=lambda one: one.job_id
    )
    groups: dict[str, list[JobBook]] = {"#1": [], "#2": []}
    for child in children:
        if f"child:{child.job_id}" in counted:
            groups[(child.parent_step or "")[-2:]].append(child)
    done = {name: [c.label for c in group if c.state == "SUCCEEDED"] for name, group in groups.items()}
    failed = {name: str(len(group) - len(done[name])) for name, group in groups.items()}
    if job.handler == "twins":
        return " ".join([*done["#1"], failed["#2"]])
    return " ".join([failed["#1"], *done["#2"]])


def _homeless(books: Books) -> Iterator[str]:
    """Say where books are left of a job that is not there."""
    known = {job.job_id for job in books.jobs}
    tables: dict[str, Iterable[str]] = {
        "events": books.events,
        "steps": books.steps,
        "activities": books.activities,
        "attempts": books.attempts,
        "messages": books.messages,
        "reservations": books.reservations.values(),
    }
    for table, owners in tables.items():
        for job_id in set(owners) - known:
            yield f"{table} of {job_id} are there and the job is not"


def _crowded(books: Books) -> Iterator[str]:
    """Say where more jobs of the queue with limits ran at once than it allows, from claim to end or reclaim.

    What ends in the millisecond of a claim was written before it.
    """
    moments: list[tuple[int, int]] = []
    for job in books.jobs:
        if job.handler in facts.IN_LIMITED:
            began = {event.attempt: event.at for event in books.events[job.job_id] if event.kind == "claim"}
            ended = {each.attempt: each.finished_at for each in books.attempts[job.job_id]}
            moments += [(at, 1) for at in began.values()]
            moments += [(at, -1) for number in began if (at := ended.get(number)) is not None]
    running = 0
    for at, change in sorted(moments):
        running += change
        if running > facts.LIMITED_AT_ONCE:
            yield f"{running} jobs of {facts.LIMITED} ran at once at {at}"
            return


def _ending(job: JobBook, books: Books) -> Iterator[Finding]:
    """Find what is not done, or not as the facts say, when everything should be."""
    if job.handler == facts.FLEETING:
        yield Finding(Wrong.STUCK, f"{job.label}: it was to be removed, and is there")
        return
    if not job.final:
        where = f"hold {job.hold}" if job.hold else f"ready_at {job.ready_at}"
        yield Finding(Wrong.STUCK, f"{job.label}: still {job.state}, attempt {job.attempt}, {where}")
        return
    if job.state == "CANCELLED" and _left_over(job, books):
        return
    if job.handler in facts.OR_CANCELLED and (job.state, job.error_code) == ("CANCELLED", None):
        return
    forked = books.forks.get(job.job_id, (None,))[0] is not None
    state, code, effects = facts.ENDINGS[f"{job.handler} again" if forked else job.handler]
    if (job.state, job.error_code) != (state, code):
        yield Finding(Wrong.LOST, f"{job.label}: ended {job.state} {job.error_code}, not {state} {code}")
    for effect in effects:
        if (job.label, effect) not in books.effects:
            yield Finding(Wrong.LOST, f"{job.label}: ended without its effect {effect}")
    by_itself = job.handler == "stubborn" and not obligations.ended_from_outside(job, books)
    if by_itself and (job.label, facts.CLEAN_UP) not in books.effects:
        yield Finding(Wrong.LOST, f"{job.label}: ended by itself without its {facts.CLEAN_UP}")
    if job.handler == "poison" and job.attempt != facts.POISON_BUDGET:
        yield Finding(
            Wrong.BROKEN, f"{job.label}: {job.attempt} attempts, its budget is {facts.POISON_BUDGET}"
        )


def _left_over(job: JobBook, books: Books) -> bool:
    """Tell whether a child was left behind by its group, which closed without counting it."""
    return job.parent is not None and f"child:{job.job_id}" not in {
        m.guid for m in books.messages[job.parent] if m.entry
    }
