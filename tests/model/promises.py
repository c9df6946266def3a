"""What must be true in every state of the jobs model, said without the decisions that led there."""

from __future__ import annotations

from typing import Any

from tests.model.holding import check_hold
from tests.model.search import Violation
from tests.model.world import (
    CANCELLED,
    INBOX,
    OPEN,
    RUN,
    SET,
    STATES,
    SUCCEEDED,
    VIEWS,
    Group,
    Job,
    State,
)


def check(model: Any, state: State) -> None:
    jobs, group, messages, order, workers, _env = state
    for j, job in enumerate(jobs):
        _check_job(model, j, job, group, messages, order)
    if group.joins > 1:
        raise Violation("the parent joined its group twice")
    if group.semaphore < 0:
        raise Violation("the semaphore of a group is below zero")
    running = [worker[1:3] for worker in workers if worker and worker[0] == RUN]
    live = [run for run in running if jobs[run[0]].live == 1 and jobs[run[0]].attempt == run[1]]
    if len(set(live)) != len(live):
        raise Violation("two workers hold the same attempt")


def _check_job(model: Any, j: int, job: Job, group: Group, messages: Any, order: Any) -> None:
    rules, shape = model.rules, model.shape
    mine = messages if j == 0 else ()
    closers = rules.closed_job(job.start) + sum(rules.closed_job(ledger) for _, ledger in mine)
    finished = rules.tasks_done(job.start) + sum(rules.tasks_done(ledger) for _, ledger in mine)
    waits = int(job.wait > 0) + int(j == 0 and group.state == OPEN)
    if job.effects and any(job.effects // 4**place % 4 > 1 for place in range(8)):
        raise Violation(f"an effect of job {j} happened twice")
    if job.calls > 1 or (job.intent == 2 and not job.calls):
        raise Violation(f"the effect of job {j} was called {job.calls} times and its intent is {job.intent}")
    _check_view(model, j, job, waits)
    check_hold(j, job)
    if job.state >= SUCCEEDED:
        _check_end(model, j, job, mine, (closers, finished))
        return
    if job.live and job.ready == 1:
        raise Violation(f"job {j} runs and is due at the same time")
    if closers or finished:
        raise Violation(f"job {j} runs on although a message has closed it")
    half = sum(
        1
        for m, (status, ledger) in enumerate(mine)
        if status == INBOX
        and not rules.children_spawned(ledger)
        and (rules.work_done(ledger) or shape.messages[m].kind == "again")
    )
    if job.semaphore != (not job.acked) + waits + half:
        there = f"start {not job.acked}, {waits} waits, {half} messages"
        raise Violation(f"the semaphore of job {j} is {job.semaphore}; open are {there}")
    if j == 0:
        _check_waiting(model, job, group, messages, order)


def _check_view(model: Any, j: int, job: Job, waits: int) -> None:
    """The attempts say what the job is: one result at most, and never two endings."""
    if job.done > 1:
        raise Violation(f"job {j} has two attempts that are DONE")
    final = job.state >= SUCCEEDED
    runs = job.live == 1 or (job.committed and not final)
    expected = VIEWS.get(job.state, "RUNNING" if runs else "PENDING")
    books = 1 if job.done else 2 if job.committed else 0
    facts = (books, job.ended, job.charged, job.live, waits)
    view = model.rules.view(*facts, model.shape.budget, job.place > 0)
    if view != expected:
        raise Violation(f"job {j} is {STATES[job.state]} and its attempts say {view}, not {expected}")
    if waits and not final and not runs:
        strict = model.rules.view(*facts, 1, job.place > 0)
        if strict != "PENDING":
            raise Violation(f"job {j} waits and is {strict} by a stricter policy")


def _check_end(model: Any, j: int, job: Job, mine: Any, closing: tuple[int, int]) -> None:
    """A job that has ended has left nothing open, and one message closed it and did the completion tasks."""
    closers, finished = closing
    left = [m for m, (status, _) in enumerate(mine) if status in (SET, INBOX)]
    if job.semaphore or left or job.wait or job.live:
        raise Violation(f"job {j} has ended and left something open: messages {left}")
    if closers != finished or closers > 1 or (job.state != CANCELLED and closers != 1):
        raise Violation(f"job {j} has ended with {closers} closers and {finished} completion tasks")
    script = model.shape.child_script if j else model.shape.script
    if job.state == SUCCEEDED and job.place != len(script) - 1:
        raise Violation(f"job {j} succeeded before its script had ended")


def _check_waiting(model: Any, job: Job, group: Group, messages: Any, order: Any) -> None:
    """No wake-up is lost: a job that nobody runs is due, or nothing that it waits for is there."""
    rules = model.rules
    for m in order:
        message = model.shape.messages[m]
        if message.kind == "result" and job.place > message.answers and not messages[m][1]:
            raise Violation(f"message {m} waits for an activity that was answered")
    if job.live or job.ready == 1 or (job.ready == 2 and model._timer_due(job, messages)):
        return
    place = job.place
    op = model.shape.script[place]
    there = [m for m in order if model._fits(m, place) and not rules.work_done(messages[m][1])]
    if op[0] in ("wait", "join") and there:
        raise Violation(f"a wake-up was lost: message {there[0]} is in the inbox and the job is not due")
    closed = group.state == OPEN and (
        group.semaphore <= model.shape.threshold or (group.failed and model.shape.fail_fast)
    )
    if op[0] == "join" and closed:
        raise Violation("a wake-up was lost: the group is closed and its parent is not due")
