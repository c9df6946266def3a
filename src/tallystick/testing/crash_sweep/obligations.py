"""What a job has open, and who may close it: semaphores, waits, groups, their messages, and the one closer.

The digits are read one by one, from the left: of a message the fourth says that it closed its job or group,
the fifth that its work is durable, the sixth that its obligation is counted, the seventh that what follows
from closing is done; the last eight say which entry it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from tallystick.testing.crash_sweep import facts
from tallystick.testing.crash_sweep.books import ActivityBook, Books, JobBook, MessageBook


def check(job: JobBook, books: Books) -> Iterator[str]:
    """Say everything that is wrong with what a job has open, had open, and was sent."""
    activities, messages = books.activities[job.job_id], books.messages[job.job_id]
    yield from _semaphore(job, activities, messages)
    yield from _start(job, books)
    yield from _closers(job, books)
    yield from _turns(job, messages)
    for activity in activities:
        if activity.kind == "group":
            yield from _group(activity, books)
        else:
            yield from _wait(job, activity, messages)
    for message in messages:
        if message.kind != "child":
            yield from _message(job, message, activities)
    copied = {
        (name, occurrence) for job_id, name, occurrence, _origin in books.copies if job_id == job.job_id
    }
    own = [activity for activity in activities if (activity.name, activity.occurrence) not in copied]
    yield from _signals(job, own, messages)
    if job.final:
        yield from (f"{activity} is open in a job that has ended" for activity in activities if activity.open)
        yield from (f"{m.guid} is not acknowledged and its job has ended" for m in messages if not m.acked_at)


def ended_from_outside(job: JobBook, books: Books) -> bool:
    """Tell whether a cancelled job was ended over the head of its holder, or had none."""
    last = max(books.events[job.job_id], key=lambda event: event.n)
    from_outside = last.kind == "reclaim" or "forced" in json.loads(last.payload)
    return job.state == "CANCELLED" and from_outside


def _semaphore(job: JobBook, activities: list[ActivityBook], messages: list[MessageBook]) -> Iterator[str]:
    """Say where a job owes something else than its start, what is open, and what drives it once taken."""
    owed = sum(activity.open for activity in activities) + (job.start_acked_at is None)
    owed += sum(_drives(message) and not message.acked_at for message in messages)
    expected = 0 if job.final else owed
    if job.semaphore != expected:
        yield f"a {job.state} job with semaphore {job.semaphore} and {expected} open obligations"


def _drives(message: MessageBook) -> bool:
    """Tell whether a message is an obligation itself: the turn of a cycle, or an answer already taken."""
    return message.kind != "child" and (message.taken or message.name == "again")


def _start(job: JobBook, books: Books) -> Iterator[str]:
    digits = f"{job.start_ledger:015d}"
    claims = sum(attempt.made for attempt in books.attempts[job.job_id])
    closed = facts.CLOSED_DIGITS
    passed = f"0000110{job.dimension + 1:08d}"
    begun = facts.ENTERED_DIGITS if claims else facts.QUEUED_DIGITS
    if job.final:
        allowed = (
            (closed, passed) if books.messages[job.job_id] or books.activities[job.job_id] else (closed,)
        )
    else:
        allowed = (begun,) if job.start_acked_at is None else (passed,)
    if digits not in allowed:
        yield f"a {job.state} job with the digits {digits} instead of {' or '.join(allowed)}"


def _closers(job: JobBook, books: Books) -> Iterator[str]:
    """Say where not one message closed a job; nobody closes one that is open or was cancelled waiting."""
    closers = [m.guid for m in books.messages[job.job_id] if m.kind != "child" and m.digits[3] == "1"]
    if f"{job.start_ledger:015d}"[3] == "1":
        closers.append("start")
    outside = job.final and ended_from_outside(job, books)
    if outside and not closers:
        return
    if len(closers) != job.final:
        yield f"a {job.state} job with the closers {closers}"


def _turns(job: JobBook, messages: list[MessageBook]) -> Iterator[str]:
    turned = sorted(m.dimension for m in messages if m.name == "again" and m.kind == "resume")
    if turned != list(range(1, job.dimension + 1)):
        yield f"a job in dimension {job.dimension} was told to turn to {turned}"


def _wait(job: JobBook, wait: ActivityBook, messages: list[MessageBook]) -> Iterator[str]:
    """Say where the digits of a wait are wrong, or it was not answered by one message."""
    digits = f"{wait.ledger:015d}"
    allowed = (facts.STEP_DIGITS,) if wait.state == "SUCCEEDED" else facts.OPEN_DIGITS
    if digits not in allowed:
        yield f"{wait}, {wait.state}, has the digits {digits}"
    timers = [m for m in messages if m.kind == "timer" and m.place == wait.place]
    if len(timers) > 1:
        yield f"{wait} has {len(timers)} timers"
    timed_out = any(timer.taken for timer in timers)
    if wait.state == "SUCCEEDED" and timed_out != (wait.result == "null"):
        yield f"{wait} has the answer {wait.result}, and its timer {'fired' if timed_out else 'did not fire'}"
    if wait.state == "SUCCEEDED" and any(not timer.acked_at and not timer.taken for timer in timers):
        yield f"{wait} is answered and its timer is still set"
    if wait.open and job.final:
        yield f"{wait} is open in a job that has ended"


def _signals(job: JobBook, activities: list[ActivityBook], messages: list[MessageBook]) -> Iterator[str]:
    """Say where signals of one name did not answer the waits of that name, each one, in order."""
    waits = sorted(
        (a for a in activities if a.kind == "wait" and a.state == "SUCCEEDED" and a.result != "null"),
        key=lambda wait: wait.n or 0,
    )
    signals = [m for m in messages if m.kind == "signal"]
    for name in {m.name for m in signals} | {wait.name for wait in waits}:
        answers = [wait.result for wait in waits if wait.name == name]
        sent = [m.payload for m in signals if m.name == name and m.taken]
        # A job that was cancelled as its signal arrived was closed by a signal that answered nothing.
        if answers != sent and not (job.state == "CANCELLED" and answers == sent[:-1]):
            yield f"the waits for {name} were answered by {answers}, and the signals taken were {sent}"


def _message(job: JobBook, message: MessageBook, activities: list[ActivityBook]) -> Iterator[str]:
    """Say where a signal, a timer or a word to go on has digits that no history has written."""
    digits = message.digits
    over = job.final or message.dimension < job.dimension
    answered = any(a.state == "SUCCEEDED" and a.place == message.place for a in activities)
    waiting = {facts.QUEUED_DIGITS, facts.ENTERED_DIGITS}
    if not message.acked_at:
        allowed = waiting | {facts.WORKED_DIGITS}
    else:
        allowed = {facts.COUNTED_DIGITS}
        if job.final:
            allowed.add(facts.CLOSED_DIGITS)
        if message.kind == "timer" and (answered or over):
            allowed.add(facts.QUEUED_DIGITS)
        if message.kind == "signal" and job.final:
            allowed.add(facts.QUEUED_DIGITS)
        if job.state == "CANCELLED" or (over and message.kind != "signal"):
            allowed |= waiting | ({facts.WORKED_DIGITS} if job.state == "CANCELLED" else set())
    if digits not in allowed:
        acked = "acknowledged" if message.acked_at else "not acknowledged"
        yield f"the {message.kind} {message.guid}, {acked}, has the digits {digits}"


def _group(group: ActivityBook, books: Books) -> Iterator[str]:
    """Say where a group was not counted down by its children one by one and closed by one of them."""
    home = f"{group.dimension}:{group.name}#{group.occurrence}"
    children = {
        f"child:{job.job_id}": job
        for job in books.jobs
        if job.parent == group.job_id and job.parent_step == home
    }
    messages = [m for m in books.messages[group.job_id] if m.place == group.place]
    counted = [m for m in messages if m.kind == "child"]
    joins = [m for m in messages if m.kind == "resume"]
    entered = len(counted)
    markers = "110" if entered and group.state != "SUCCEEDED" else "111" if entered else "000"
    digits = f"{group.ledger:015d}"
    if digits != f"0011{markers}{entered:08d}":
        yield f"{group}, {group.state}, has the digits {digits} after {entered} of {len(children)} children"
    if group.semaphore != len(children) - entered:
        yield f"{group} has semaphore {group.semaphore} after {entered} of {len(children)} children"
    closing = len(children) - (group.threshold or 0)
    failed = sum(message.payload != "SUCCEEDED" for message in counted)
    if group.failed != failed:
        yield f"{group} counts {group.failed} failed children, and {failed} have failed"
    closed = entered >= closing or bool(group.fail_fast and failed)
    expected = Counter(
        f"{'0001111' if ordinal == closing else '0000110'}{ordinal:08d}" for ordinal in range(1, entered + 1)
    )
    if Counter(m.digits for m in counted) != expected:
        yield f"the children of {group} have the digits {sorted(m.digits for m in counted)}"
    if len(joins) != closed:
        yield f"{group} is {'closed' if closed else 'open'} and has {len(joins)} words for its parent"
    if group.state == "SUCCEEDED" and not closed:
        yield f"{group} was joined after {entered} of {len(children)} children"
    yield from _children(group, children, counted)


def _children(group: ActivityBook, children: dict[str, JobBook], counted: list[MessageBook]) -> Iterator[str]:
    known = {m.guid: m for m in counted}
    for guid in known.keys() - children.keys():
        yield f"{guid} was counted for {group} and is none of its children"
    for guid, child in children.items():
        message = known.get(guid)
        if message is None:
            if child.final and group.open:
                yield f"{child.label} has ended and {group} did not count it"
        elif message.payload != child.state:
            yield f"{child.label} is {child.state} and was counted as {message.payload}"
        elif not message.acked_at:
            yield f"{guid} is not acknowledged"
