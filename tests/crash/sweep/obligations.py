"""What a job has open, and who may close it: semaphores, waits, groups, their messages, and the one closer.

The digits are read one by one, from the left. Of an activity, which is a wait, a group or the job itself:
three that count how often it was come to, one that says that this is durable, and the last eight count the
messages that entered it. Of a message: the fourth says that it closed its job or group, the last eight which
entry it was. The three between say the same of both: the work is durable, the obligation is counted, what
follows from closing is done. So an activity says exactly what its messages say together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tests.crash.sweep import facts
from tests.crash.sweep.books import ActivityBook, Books, JobBook, MessageBook


def check(job: JobBook, books: Books) -> Iterator[str]:
    """Say everything that is wrong with what a job has open, had open, and was sent."""
    activities, messages = books.activities[job.job_id], books.messages[job.job_id]
    copied = {
        (name, occurrence) for job_id, name, occurrence, _origin in books.copies if job_id == job.job_id
    }
    # A copy has the digits of its origin, and no messages.
    own = [activity for activity in activities if (activity.name, activity.occurrence) not in copied]
    yield from _semaphore(job, own, messages)
    yield from _root(job, books)
    yield from _drivers(job, books)
    for activity in own:
        answers = [message for message in messages if message.place == activity.place]
        if activity.kind == "group":
            yield from _group(activity, answers, books)
        else:
            yield from _adds_up(f"{activity}, {activity.state},", activity.ledger, answers)
            yield from _wait(activity, answers)
    for message in (job.start, *messages):
        yield from _message(job, message, books)
    kept = books.trim_of(job.job_id).turns
    yield from _signals(own, [message for message in messages if message.dimension >= kept])
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
    owed += sum((m.taken or m.of_root) and not m.acked_at for m in messages if m.kind != "child")
    expected = 0 if job.final else owed
    if job.semaphore != expected:
        yield f"a {job.state} job with semaphore {job.semaphore} and {expected} open obligations"


def _root(job: JobBook, books: Books) -> Iterator[str]:
    """Say where the digits of a job are wrong: its start enters it, every turn, and what cancels it."""
    words = [message for message in books.messages[job.job_id] if message.of_root]
    # Every turn but the first was entered by a word, which goes with its turn.
    gone = range(2, books.trim_of(job.job_id).turns + 1)
    yield from _adds_up(f"a {job.state} job", job.root_ledger, [job.start, *words], gone=gone)
    claimed = any(attempt.made for attempt in books.attempts[job.job_id])
    if job.start.entry != claimed:
        yield f"a {job.state} job, {'claimed' if claimed else 'unclaimed'}, starts with {job.start.digits}"
    turns = {word.dimension: word.entry for word in words if word.name == facts.AGAIN}
    if sorted(turns) != list(range(max(1, books.trim_of(job.job_id).turns), job.dimension + 1)):
        yield f"a job in dimension {job.dimension} was told to turn to {sorted(turns)}"
    if any(entry not in (0, dimension + 1) for dimension, entry in turns.items()):
        yield f"a job whose turns were the entries {turns}"


def _adds_up(
    what: str, ledger: int, messages: list[MessageBook], complete: int = 1, gone: Sequence[int] = ()
) -> Iterator[str]:
    """Say where an activity says something else than its messages: a marker for all, an entry for each."""
    markers = [max((message.digits[place] for message in messages), default="0") for place in (4, 5, 6)]
    entries = sorted([*gone, *(message.entry for message in messages if message.entry)])
    expected = f"001{complete}{''.join(markers)}{len(entries):08d}"
    if f"{ledger:015d}" != expected and not _is_full(ledger):
        yield f"{what} has the digits {ledger:015d} instead of {expected}"
    if entries != list(range(1, len(entries) + 1)) and not _is_full(ledger):
        yield f"{what} has the entries {entries}"


def _is_full(ledger: int) -> bool:
    """Tell whether an activity can count no more: it is left as it is, and its job ends without a closer."""
    return f"{ledger:015d}".startswith("999") or f"{ledger:015d}".endswith("9" * 8)


def _drivers(job: JobBook, books: Books) -> Iterator[str]:
    """Say where not one message closed a job that ended, or one is at work that no attempt is driven by."""
    messages = [job.start, *(m for m in books.messages[job.job_id] if m.kind != "child")]
    last = [attempt.guid for attempt in books.attempts[job.job_id][-1:]]
    closers = [message.guid for message in messages if message.closes]
    none_closed = job.escalated and not closers
    if closers != (last if job.final else []) and not none_closed:
        yield f"a {job.state} job with the closers {closers}, last driven by {last}"
    begun = [message.guid for message in messages if message.entry and not message.acked_at]
    if begun and begun != last:
        yield f"a {job.state} job with {begun} at work, last driven by {last}"


def _wait(wait: ActivityBook, messages: list[MessageBook]) -> Iterator[str]:
    """Say where a wait was not answered by one message."""
    timers = [message for message in messages if message.kind == "timer"]
    if len(timers) > 1:
        yield f"{wait} has {len(timers)} timers"
    taken = [message for message in messages if message.taken]
    # One that was dropped may have been entered by what drove the last segment, which did not come to it.
    if len(taken) != (wait.state == "SUCCEEDED") and not (len(taken) == 1 and wait.state == "CANCELLED"):
        yield f"{wait}, {wait.state}, was answered by {[message.guid for message in taken]}"
    if wait.state != "SUCCEEDED":
        return
    timed_out = any(timer.taken for timer in timers)
    if timed_out != (wait.result == "null"):
        yield f"{wait} has the answer {wait.result}, and its timer {'fired' if timed_out else 'did not fire'}"
    if any(not timer.acked_at and not timer.taken for timer in timers):
        yield f"{wait} is answered and its timer is still set"


def _signals(activities: list[ActivityBook], messages: list[MessageBook]) -> Iterator[str]:
    """Say where signals of one name did not answer the waits of that name, each one, in order."""
    waits = sorted(
        (a for a in activities if a.kind == "wait" and a.state == "SUCCEEDED" and a.result != "null"),
        key=lambda wait: wait.n or 0,
    )
    dropped = {activity.place for activity in activities if activity.state == "CANCELLED"}
    signals = [message for message in messages if message.kind == "signal"]
    for name in {m.name for m in signals} | {wait.name for wait in waits}:
        answers = [(wait.place, wait.result) for wait in waits if wait.name == name]
        sent = [
            (m.place, m.payload) for m in signals if m.name == name and m.taken and m.place not in dropped
        ]
        if answers != sent:
            yield f"the waits for {name} were answered by {answers}, and the signals taken were {sent}"


def _message(job: JobBook, message: MessageBook, books: Books) -> Iterator[str]:
    """Say where a message that may drive a job has digits that no history has written."""
    if message.kind == "child":
        return
    if message.kind == "signal" and bool(message.entry) != (message.occurrence is not None):
        yield f"{message.guid} was entry {message.entry} of the occurrence {message.occurrence}"
    if message.ledger == 0:
        allowed = not message.acked_at or _may_be_unread(job, message, books.activities[job.job_id])
    else:
        allowed = message.entry > 0 and message.digits[:7] in _markers(job, message, books)
    if not allowed:
        acked = "acknowledged" if message.acked_at else "not acknowledged"
        yield f"the {message.kind} {message.guid}, {acked}, has the digits {message.digits}"


def _markers(job: JobBook, message: MessageBook, books: Books) -> set[str]:
    """Return what may stand before the entry of a message that has entered."""
    if not message.acked_at:
        return {facts.ENTERED} if message.of_root else {facts.ENTERED, facts.WORKED}
    if job.final and any(m.closes and m.name == facts.CANCEL for m in books.messages[job.job_id]):
        # It was at work, and nobody ran it, when the job was cancelled.
        return {facts.ENTERED, facts.WORKED, facts.COUNTED, facts.CLOSER}
    return {facts.COUNTED, facts.CLOSER} if job.final else {facts.COUNTED}


def _may_be_unread(job: JobBook, message: MessageBook, activities: list[ActivityBook]) -> bool:
    """Tell whether a message may be acknowledged that nobody took: what it was for is over."""
    if message.kind == "timer":
        answered = any(a.place == message.place and a.state == "SUCCEEDED" for a in activities)
        return answered or job.final or message.dimension < job.dimension
    return job.final or (message.kind == "resume" and message.dimension < job.dimension)


def _group(group: ActivityBook, messages: list[MessageBook], books: Books) -> Iterator[str]:
    """Say where a group was not counted down by its children one by one and closed by one of them."""
    home = f"{group.dimension}:{group.name}#{group.occurrence}"
    children = {
        f"child:{job.job_id}": job
        for job in books.jobs
        if job.parent == group.job_id and job.parent_step == home
    }
    words = [message for message in messages if message.kind == "child"]
    joins = [message for message in messages if message.kind == "resume"]
    counted = sorted((word for word in words if word.entry), key=lambda word: word.entry)
    so_far = f"after {len(counted)} of {len(children)} children"
    total = (group.semaphore or 0) + len(counted)
    complete = len(children) == total
    yield from _adds_up(f"{group}, {group.state}, {so_far},", group.ledger, messages, int(complete))
    if total < len(children) or (counted and not complete):
        yield f"{group} has semaphore {group.semaphore} {so_far}"
    failed = sum(message.payload != "SUCCEEDED" for message in counted)
    if group.failed != failed:
        yield f"{group} counts {group.failed} failed children, and {failed} have failed"
    closing = total - (group.threshold or 0)
    closed = len(counted) >= closing or bool(group.fail_fast and failed)
    markers = [facts.CLOSER if place == closing else facts.COUNTED for place in range(1, len(counted) + 1)]
    if [message.digits[:7] for message in counted] != markers:
        yield f"the children of {group} have the digits {[message.digits for message in counted]}"
    if len(joins) != closed:
        yield f"{group} is {'closed' if closed else 'open'} and has {len(joins)} words for its parent"
    if group.state == "SUCCEEDED" and not closed:
        yield f"{group} was joined {so_far}"
    over = not group.open or len(counted) >= closing
    yield from _children(group, children, words, over=over, complete=complete)


def _children(
    group: ActivityBook,
    children: dict[str, JobBook],
    words: list[MessageBook],
    *,
    over: bool,
    complete: bool,
) -> Iterator[str]:
    """Say where a child left no word, or a wrong one: not counted is only who ends too early or too late."""
    known = {message.guid: message for message in words}
    for guid in known.keys() - children.keys():
        yield f"{guid} was counted for {group} and is none of its children"
    for guid, child in children.items():
        message = known.get(guid)
        if message is None:
            if child.final:
                yield f"{child.label} has ended and {group} did not count it"
        elif message.payload != child.state:
            yield f"{child.label} is {child.state} and was counted as {message.payload}"
        elif not message.acked_at and (message.ledger or complete):
            yield f"{guid} is not acknowledged"
        elif message.acked_at and not message.ledger and not over:
            yield f"{guid} was not counted, and {group} is open"
