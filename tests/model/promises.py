"""What must be true in every state of the jobs model, said without the decisions that led there."""

from __future__ import annotations

from typing import Any

from tests.model import remote_steps
from tests.model.books import NOW, Book, Books, Desk
from tests.model.search import Violation
from tests.model.world import GATHER, Run, lease_of

VIEWS = {"SUCCEEDED": "SUCCEEDED", "FAILED_FINAL": "FAILED", "CANCELLED": "CANCELLED"}
OPEN = "IN_PROGRESS"
GROUP = tuple(GATHER)


def check(model: Any, books: Books) -> None:
    for j, book in enumerate(books):
        _check_job(model, j, book)
        _check_digits(model.rules, j, book)
        _check_losers(j, book)
        remote_steps.check(book)
    _check_group(model, books)
    _check_tree(books)


def check_workers(books: Books, workers: tuple[Any, ...]) -> None:
    runs = [run[:2] for run in workers if isinstance(run, Run)]
    live = [run for run in runs if (lease := books[run[0]].lease) and lease.live and lease.attempt == run[1]]
    if len(set(live)) != len(live):
        raise Violation("two workers hold the same attempt")


def check_taken(desk: Desk, name: str, guid: str) -> None:
    """Signals of one name are taken in the order in which they became durable."""
    messages = desk.pictures[name].messages
    taken = messages[guid]
    older = [
        each.guid
        for each in messages.values()
        if (each.kind, each.name) == (taken.kind, taken.name) == ("signal", taken.name)
        and each.acked_at is None
        and not each.is_taken
        and each.arrived < taken.arrived
    ]
    if older:
        raise Violation(f"{guid} is taken before {older[0]}, which came earlier")


def _check_job(model: Any, j: int, book: Book) -> None:
    job, lease, activities, messages, past, _remotes = book
    rules = model.rules
    opened = [each for each in activities if each.is_open]
    if past.effects and any(past.effects // 4**place % 4 > 1 for place in range(8)):
        raise Violation(f"an effect of job {j} happened twice")
    if past.calls > 1 or (past.intent == 2 and not past.calls):
        raise Violation(f"the effect of job {j} was called {past.calls} times, its intent is {past.intent}")
    _check_view(model, j, book, len(opened))
    _check_sweep(model, book)
    _check_cancel(model)
    _check_deliveries(model)
    _check_fence(model, book)
    if job.hold is not None and (job.completed_at is not None or job.state == "CANCELLING"):
        raise Violation(f"job {j} is held although it has ended or is being cancelled")
    if job.completed_at is not None:
        _check_end(model, j, book, len(opened))
        return
    if (job.hold is not None) != past.wish and job.state != "CANCELLING":
        raise Violation(f"a hold of job {j} was lost: nobody has resumed it")
    if lease is not None and job.ready_at is not None:
        raise Violation(f"job {j} runs and is due at the same time")
    owed = [each for each in messages if each.acked_at is None and each.kind != "child"]
    half = sum(rules.work_done(each.ledger) or each.is_of_root for each in owed)
    if job.semaphore != (job.start_acked_at is None) + len(opened) + half:
        there = f"start {job.start_acked_at is None}, {len(opened)} activities, {half} messages"
        raise Violation(f"the semaphore of job {j} is {job.semaphore}; open are {there}")
    if j == 0 and lease is None and (job.ready_at is None or job.ready_at > NOW):
        _check_waiting(model, book)


def _check_tree(books: Books) -> None:
    """Whatever is below a job that has ended or is asked to end is asked too: no claim takes it for work."""
    for book in books[1:]:
        home = books[0].job
        ends = home.completed_at is not None or home.state == "CANCELLING"
        if ends and book.job.completed_at is None and book.job.state != "CANCELLING":
            raise Violation(f"the parent is {home.state}, and a child of it is {book.job.state}")


def _check_view(model: Any, j: int, book: Book, waits: int) -> None:
    """The attempts say what the job is: one result at most, and never two endings."""
    job, lease, past = book.job, book.lease, book.past
    if past.done > 1:
        raise Violation(f"job {j} has two attempts that are DONE")
    live = 0 if lease is None else 1 if lease.live else 2
    committed = lease is not None and lease.status == "COMMITTED"
    expected = VIEWS.get(job.state, "RUNNING" if live == 1 or committed else "PENDING")
    facts = (past.ended, past.charged, live, waits)
    budget, progressed = model.shape.budget, past.place > 0
    view = model.rules.view(2 if committed else past.done, *facts, budget, progressed)
    if view != expected:
        raise Violation(f"job {j} is {job.state} and its attempts say {view}, not {expected}")
    if job.completed_at is None and model.rules.view(2, *facts, budget, progressed) != "RUNNING":
        raise Violation(f"job {j} has committed and does not run")
    if waits and job.completed_at is None and live != 1 and not committed:
        strict = model.rules.view(past.done, *facts, 1, progressed)
        if strict != "PENDING":
            raise Violation(f"job {j} waits and is {strict} by a stricter policy")


def _check_sweep(model: Any, book: Book) -> None:
    """A sweep leaves what is live or has ended, finishes what was committed, and asks about an effect."""
    if book.lease is None:
        return
    cancelling, charged, budget = book.job.state == "CANCELLING", book.past.charged + 1, model.shape.budget
    plain = {"expired": True, "effect": False, "held": False, "refused": False}
    plain |= {"cancelling": cancelling, "charged": charged, "budget": budget}
    spent = "RETRY" if charged < budget else "FAIL"
    for status, about, expected in (
        ("IN_PROGRESS", {"expired": False}, "LEAVE"),
        ("DONE", {}, "LEAVE"),
        ("ABORTED", {}, "LEAVE"),
        ("COMMITTED", {"expired": False}, "LEAVE"),
        ("COMMITTED", {}, "FINISH"),
        ("COMMITTED", {"effect": True}, "IN_DOUBT"),
        ("COMMITTED", {"effect": True, "held": True}, "IN_DOUBT"),
        ("COMMITTED", {"effect": True, "runs": True}, "LEAVE"),
        ("COMMITTED", {"runs": True}, "FINISH"),
        ("COMMITTED", {"held": True}, "LEAVE"),
        ("COMMITTED", {"refused": True}, "HOLD"),
        ("IN_PROGRESS", {"refused": True}, "HOLD"),
        ("IN_PROGRESS", {"budget": None}, "SETTLE" if cancelling else "HOLD"),
        ("IN_PROGRESS", {"held": True}, "SETTLE" if cancelling else spent),
        ("IN_PROGRESS", {}, "SETTLE" if cancelling else spent),
        ("LEASED", {}, "SETTLE" if cancelling else spent),
        ("IN_PROGRESS", {"waits": True}, "RETRY"),
        ("IN_PROGRESS", {"waits": True, "charged": budget}, "RETRY"),
        ("IN_PROGRESS", {"charged": budget}, "SETTLE" if cancelling else "FAIL"),
    ):
        verdict = model.core.decisions.decide_reclaim(**{"status": status, **plain, **about})
        if verdict.name != expected:
            raise Violation(f"a sweep is to {verdict.name} an attempt that is {status}")


def _check_cancel(model: Any) -> None:
    """What is committed is finished, and not cancelled; by its holder, while there is one."""
    committed = {"final": False, "held": True, "committed": True}
    for live, forced in ((True, False), (True, True), (False, False), (False, True)):
        verdict = model.core.decisions.decide_cancel(**committed, live=live, forced=forced)
        if verdict.name != ("NOTHING" if live else "FINISH"):
            raise Violation(f"a cancellation is to {verdict.name} what is committed")


def _check_deliveries(model: Any) -> None:
    """What comes for a wait that was answered is dropped, and what has begun goes first.

    No history of a world asks this: a verb names open activities alone, and here no clock goes back.
    """
    answered = {"job_final": False, "names_activity": True, "leg1_complete": True, "wait_open": False}
    for live in (False, True):
        verdict = model.core.decisions.decide_deliver(**answered, attempt_live=live)
        if verdict.name != "DROP":
            raise Violation(f"a message whose wait was answered is to {verdict.name}")
    for begun, first in (((False, True), 1), ((True, False), 0), ((False, False), 0), ((), None)):
        if model.core.decisions.first_to_act(begun) != first:
            raise Violation(f"of messages that have begun as {begun}, another goes first")


def _check_fence(model: Any, book: Book) -> None:
    """The fence lets the holder of a live lease pass, and nobody else."""
    lease = book.lease
    row = None if lease is None else (lease.attempt, lease.lease_id)
    for attempt in (book.job.attempt, book.job.attempt - 1):
        fence = (attempt, lease_of(book.job.attempt))
        for state in ("IN_PROGRESS", "COMMITTED"):
            held = model.rules.held(row, *fence, state, lease is not None and not lease.live)
            if held is not (lease is not None and lease.live and row == fence and state == "IN_PROGRESS"):
                raise Violation(f"a fence says {held} of attempt {attempt}, which is {state}")
    if model.rules.held((1, "l"), 1, "l", "IN_PROGRESS", expired=False, ended=True):
        raise Violation("a fence lets somebody pass whose job has ended")


def _check_end(model: Any, j: int, book: Book, opened: int) -> None:
    """A job that has ended has left nothing open, and one message closed it and did the completion tasks."""
    job, rules = book.job, model.rules
    left = [each.guid for each in book.messages if each.acked_at is None]
    owes = job.start_acked_at is None or job.ready_at is not None
    if job.semaphore or left or opened or book.lease or owes:
        raise Violation(f"job {j} has ended and left something open: messages {left}")
    ledgers = [job.start_ledger, *(each.ledger for each in book.messages if each.kind != "child")]
    closers = [ledger for ledger in ledgers if rules.closed_job(ledger)]
    if len(closers) != 1 or not rules.tasks_done(closers[0]):
        raise Violation(f"job {j} has ended with {len(closers)} closers")
    script = model.shape.script_of(j)
    if job.state == "SUCCEEDED" and book.past.place != len(script) - 1:
        raise Violation(f"job {j} succeeded before its script had ended")
    if job.state == "CANCELLED" and job.cancel_at is None:
        raise Violation(f"job {j} is cancelled, and does not say when it was asked to")


def _check_waiting(model: Any, book: Book) -> None:
    """No wake-up is lost: a job that nobody runs is due, or nothing that it waits for is there."""
    script, place, rules = model.shape.script, book.past.place, model.rules
    opened = {each.place: each for each in book.activities if each.is_open}
    for message in book.messages:
        if message.acked_at is not None or rules.work_done(message.ledger):
            continue
        named = message.place in opened or message.is_of_root
        if message.kind == "signal":
            named = any((each.kind, each.name) == ("wait", message.name) for each in opened.values())
        if message.kind == "timer":
            named = named and (message.due_at or 0) <= NOW
        if message.kind in ("child", "resume") and script[place][0] not in ("join", "gather", "again"):
            named = message.is_of_root
        if message.kind == "result" and book.job.state == "CANCELLING":
            # It ends without its function, as soon as no remote worker is at it any more.
            named = named and book.job.cancel_at != NOW and not remote_steps.may_be_at_it(book)
        if message.kind != "child" and named:
            raise Violation(f"a wake-up was lost: {message.guid} is in the inbox and the job is not due")
    group = opened.get(GROUP)
    if group is not None and _is_closed(model, group) and script[place][0] in ("join", "gather"):
        raise Violation("a wake-up was lost: the group is closed and its parent is not due")


def _is_closed(model: Any, group: Any) -> bool:
    enough = group.semaphore <= model.shape.threshold
    return bool(enough or (model.shape.fail_fast and group.failed))


def _check_digits(rules: Any, j: int, book: Book) -> None:
    """The digits of an activity are the sum of what its messages did."""
    job = book.job
    of_root = [each for each in book.messages if each.is_of_root]
    _compare(f"the root of job {j}", job.root_ledger, [job.start_ledger, *(each.ledger for each in of_root)])
    for activity in book.activities:
        mine = [each.ledger for each in book.messages if each.place == activity.place and not each.is_of_root]
        _compare(f"{activity.kind} {activity.name}#{activity.occurrence}", activity.ledger, mine)
        taken = any(
            rules.work_done(each.ledger)
            for each in book.messages
            if each.place == activity.place and each.kind != "child"
        )
        # One that was dropped may have been entered by the message that closed the job or made it turn.
        if (taken and activity.is_open) or (not taken and activity.state in ("SUCCEEDED", "FAILED_FINAL")):
            raise Violation(f"{activity.name} is {activity.state} and its messages say otherwise")


def _check_losers(j: int, book: Book) -> None:
    """The timer that lost the race for a wait does not stay behind."""
    ended = {each.place for each in book.activities if not each.is_open}
    for each in book.messages:
        if each.kind == "timer" and each.acked_at is None and not each.ledger and each.place in ended:
            raise Violation(f"{each.guid} of job {j} waits for an activity that was answered")


def _compare(what: str, ledger: int, messages: list[int]) -> None:
    entered = [digits for digits in messages if digits]
    entries, numbers = ledger % 10**8, {digits % 10**8 for digits in entered}
    if len(entered) != entries or numbers != set(range(1, entries + 1)):
        raise Violation(f"{what} is {ledger:015d} and was entered by {sorted(numbers)}")
    # Work, children and tasks stand in the same places of both ledgers.
    for weight, mine, name in ((10**10, 10**10, "work"), (10**9, 10**9, "children"), (10**8, 10**8, "tasks")):
        done = any(digits // mine % 10 for digits in entered)
        if ledger // weight % 10 != done:
            raise Violation(f"{what} is {ledger:015d}, and {name} of its messages say {done}")


def _check_group(model: Any, books: Books) -> None:
    """Every child that has ended is counted once, waits for its group to be whole, or came too late."""
    group = next((each for each in books[0].activities if each.place == GROUP), None)
    words = [each for each in books[0].messages if each.kind == "child"]
    ended = sum(book.job.completed_at is not None for book in books[1:])
    if len(words) != ended:
        raise Violation(f"{ended} children have ended, and their parent has heard of {len(words)}")
    if group is None:
        return
    counted = [each for each in words if each.ledger]
    failed = sum(each.payload != "SUCCEEDED" for each in counted)
    if group.semaphore != model.shape.children - len(counted) or group.failed != failed:
        raise Violation(f"the group stands at {group.semaphore} after {len(counted)} of its children")
    if group.state == "SUCCEEDED" and not _is_closed(model, group):
        raise Violation("a group is joined that is not closed")
    whole = len(books) == model.shape.children + 1
    if model.core.marks.is_complete(group.ledger) is not whole:
        raise Violation(f"leg 1 of the group is {group.ledger:015d} with {len(books) - 1} children")
    waiting = [each for each in words if each.acked_at is None]
    if waiting and (whole or books[0].job.completed_at is not None):
        raise Violation("a child has ended, and its group does not count it")
    closers = [each for each in counted if model.rules.closed_job(each.ledger)]
    if len(closers) != (group.semaphore <= model.shape.threshold):
        raise Violation(f"{len(closers)} children closed the group, which stands at {group.semaphore}")
