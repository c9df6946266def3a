"""Waiting and waking: the two bundles between which no wake-up can fall, because both hold the job's row."""

from __future__ import annotations

from tallystick.core.chain import step_payload
from tallystick.core.decisions import close_delta, decide_suspend, settle_delta
from tallystick.core.derive import AbortReason
from tallystick.core.lifecycles import JobState
from tallystick.errors import InvariantBroken
from tallystick.store.api import (
    Answer,
    Await,
    CountDown,
    Deliver,
    Delivered,
    EndAttempt,
    EndJob,
    Fact,
    Fence,
)
from tallystick.store.writing import Writing, insist

ANSWERED = 1_111_000_000_001
TASKS_DONE = 100_000_000


def enter_driver(batch: Writing, job_id: str, dimension: int) -> str:
    """Count the entry of the message that drives this claim, before any work, and return its guid."""
    found = batch.rows("driver", (job_id, batch.wall))
    if not found:
        return ""
    guid: str = found[0][0]
    batch.run("enter_wait", (job_id, guid, dimension))
    insist(batch, "enter_message", (guid, job_id))
    return guid


def await_message(batch: Writing, request: Await) -> Answer | JobState | None:
    """Answer the wait from the inbox, or suspend the segment, or tell it that the job was asked to end."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    job_id, wait, dimension = request.fence.job_id, request.wait, request.dimension
    (found,) = batch.rows("cancellable", (job_id,))
    if found[0] == JobState.CANCELLING and not request.asked:
        return JobState.CANCELLING
    place = (job_id, dimension, wait.name, wait.occurrence)
    rows = batch.rows("open_wait", place)
    opened = bool(rows)
    if wait.due_at is not None and not opened:
        _set_timer(batch, request)
    inbox = batch.rows("answer", (*place, wait.kind, batch.wall, request.driver))
    decision = decide_suspend([wait.name], [wait.name for _ in inbox])
    if decision.suspend:
        _suspend(batch, request, opened=opened)
        return None
    guid, kind, payload, _ledger = inbox[0]
    answer = Answer(guid, payload, timed_out=kind == "timer")
    ledger = joined(rows[0][0]) if wait.kind == "group" else ANSWERED
    _take(batch, request, answer, ledger, opened=opened)
    return answer


def joined(ledger: int) -> int:
    """Return the digits of a group that its parent has joined."""
    return ledger + TASKS_DONE * (ledger // TASKS_DONE % 10 == 0)


def deliver(batch: Writing, request: Deliver) -> Delivered:
    """Store the message and wake its job, or say why not."""
    batch.lock(request.job_id)
    row = (
        request.guid,
        request.job_id,
        0,
        request.name,
        None,
        request.kind,
        request.payload,
        None,
        request.at,
    )
    if not batch.changed("insert_message", row):
        known = batch.rows("message", (request.guid,))
        return Delivered.KNOWN if known else Delivered.DROPPED
    woke = batch.changed("wake", (request.job_id, batch.wall, request.name, "wait"))
    return Delivered.WOKE if woke else Delivered.KEPT


def close_waits(batch: Writing, request: EndJob) -> None:
    """Close a job that has waited: drop what is open, and let the driving message be the closer."""
    job_id = request.fence.job_id
    still_open = drop_open(batch, job_id, request.fence.attempt, request.driver)
    if request.driver == "start":
        # Its own step 2 follows in `end_job`, which expects the start to be the last obligation.
        batch.many("open_more", [(*request.fence[:2], -still_open)], [request.fence])
        return
    marked, consumed = _consumed(batch, job_id, request.driver)
    if not marked:
        insist(batch, "mark_work", (request.driver, job_id))
    delta = close_delta(starts=False, consumed=consumed, still_open=still_open)
    _count_down(batch, job_id, request.driver, delta)
    insist(batch, "mark_tasks", (request.driver, job_id, batch.wall))


def drop_open(batch: Writing, job_id: str, attempt: int, driver: str, *, signals: bool = True) -> int:
    """Drop every open activity and every message but the driver; return how many activities were open.

    Signals that nobody took stay when only a turn of the job is over. How many messages there were does not
    matter: each that is not the driver stands for an activity that was counted, or for nothing.
    """
    still_open = batch.changed("drop_activities", (job_id, attempt, batch.wall))
    batch.run("drop_messages", (job_id, attempt, driver, batch.wall, int(signals)))
    return still_open


def settle_driver(batch: Writing, fence: Fence, driver: str, *, opened: int, finished: bool = False) -> None:
    """Do step 2 of the message that drove a segment: what it opened, less itself, and its acknowledgement.

    A message that woke the job and was not taken stays: it answers a wait that is still to come.
    """
    job_id = fence.job_id
    starts = driver == "start"
    marked, consumed = (False, False) if starts else _consumed(batch, job_id, driver)
    delta = settle_delta(starts=starts, consumed=consumed, opened=opened, finished=finished and driver != "")
    if starts:
        batch.many("close_start", [(*fence[:2], delta, batch.wall)], [fence])
        return
    if delta is None:
        batch.many("open_more", [(*fence[:2], opened)], [fence])
        return
    if not marked:
        insist(batch, "mark_work", (driver, job_id))
    _count_down(batch, job_id, driver, delta)
    insist(batch, "acknowledge", (driver, job_id, batch.wall))


def _consumed(batch: Writing, job_id: str, guid: str) -> tuple[bool, bool]:
    """Return whether the work of a message is marked as durable, and whether the message is taken."""
    found = batch.rows("consumed", (guid, job_id))
    return (bool(found[0][0]), bool(found[0][1])) if found else (False, False)


def _timer(request: Await) -> str:
    wait = request.wait
    return f"{request.fence.job_id}:{request.dimension}:{wait.name}#{wait.occurrence}:timer"


def _set_timer(batch: Writing, request: Await) -> None:
    wait, job_id = request.wait, request.fence.job_id
    place = (request.dimension, wait.name, wait.occurrence)
    assert wait.due_at is not None
    due_at = batch.moment(wait.due_at, request.fact.at)
    insist(batch, "insert_message", (_timer(request), job_id, *place, "timer", None, due_at, batch.wall))


def _take(batch: Writing, request: Await, answer: Answer, ledger: int, *, opened: bool) -> None:
    """Give the wait its result and the message its marks; a driver keeps its obligation to the end."""
    job_id, wait, attempt = request.fence.job_id, request.wait, request.fence.attempt
    result = "null" if answer.payload is None else answer.payload
    payload = step_payload(wait.name, wait.occurrence, "SUCCEEDED", ledger, result, None, None)
    event = batch.placed(Fact(request.fact.chain, wait.kind, request.fact.at, attempt, payload))
    place = (job_id, request.dimension, wait.name, wait.occurrence)
    ending = (result, None, attempt, event.at, event.n, event.prev_hash, event.event_hash)
    if wait.kind == "group":
        batch.many("join_group", [(*place, result, *ending[2:], ledger)], [request.fence])
    elif opened:
        batch.many("answer_wait", [(*place, *ending)], [request.fence])
    else:
        batch.many("insert_answered_wait", [(*place, *ending, wait.kind)], [request.fence])
    insist(batch, "mark_work", (answer.guid, job_id))
    if not answer.timed_out:
        batch.run("acknowledge_loser", (_timer(request), job_id, batch.wall))
    if answer.guid != request.driver:
        _count_down(batch, job_id, answer.guid, -1 if opened else 0)
        insist(batch, "acknowledge", (answer.guid, job_id, batch.wall))


def _suspend(batch: Writing, request: Await, *, opened: bool) -> None:
    fence, wait = request.fence, request.wait
    if not opened:
        row = (
            fence.job_id,
            request.dimension,
            wait.name,
            wait.occurrence,
            wait.kind,
            fence.attempt,
            batch.wall,
        )
        insist(batch, "insert_wait", row)
    settle_driver(batch, fence, request.driver, opened=0 if opened else 1)
    place = (fence.job_id, request.dimension, wait.name, wait.occurrence)
    ((due_at,),) = batch.rows("timer_due", place)
    batch.end_attempts([EndAttempt(fence, AbortReason.SUSPENDED, False, due_at, None, None, request.fact)])


def _count_down(batch: Writing, job_id: str, guid: str, delta: int) -> None:
    if batch.count_down(CountDown(job_id, 0, "", 0, guid, delta, 0)) is None:
        raise InvariantBroken(f"job {job_id} has ended while message {guid} was at work", job_id=job_id)
