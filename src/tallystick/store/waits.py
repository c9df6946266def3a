"""Waiting and waking: the two bundles between which no wake-up can fall, because both hold the job's row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from tallystick.core.chain import Chain, step_payload
from tallystick.core.decisions import close_delta, decide_suspend, settle_delta
from tallystick.core.derive import AbortReason
from tallystick.core.digits import ActivityLedger
from tallystick.core.holds import Hold
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
    TakeAnswer,
    Wait,
    Wake,
)
from tallystick.store.writing import Writing, insist

ANSWERED = int(
    ActivityLedger.of(leg1_entries=1, leg1_complete=1, work_done=1, children_spawned=1, leg2_entries=1)
)


def as_wake(row: Sequence[Any]) -> Wake:
    """Return a row of `driver` as the message that it is."""
    guid, kind, dimension, name, occurrence, payload, taken = row
    return Wake(guid, kind, dimension, name, occurrence, payload, bool(taken))


def take_answer(batch: Writing, request: TakeAnswer) -> None:
    """Give a wait the message that drove the claim."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    wait, wake = request.wait, request.wake
    place = (request.fence.job_id, request.dimension, wait.name, wait.occurrence)
    answer = Answer(wake.guid, wake.payload, wake.kind == "timer")
    taking = _Taking(request.fence, wake.guid, request.chain, request.at)
    _take(batch, taking, wait, answer, place, _digits_of(batch, place))


def await_message(batch: Writing, request: Await) -> Answer | JobState | Hold | None:
    """Answer the wait from the inbox, or suspend the segment, or tell it that the job is to end or held."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    (found,) = batch.rows("cancellable", (request.fence.job_id,))
    if found[0] == JobState.CANCELLING and not request.asked:
        return JobState.CANCELLING
    if found[6] is not None:
        return Hold(found[6])
    places = [(request.fence.job_id, request.dimension, w.name, w.occurrence) for w in request.waits]
    ledgers = [_digits_of(batch, place) for place in places]
    for wait, place, ledger in zip(request.waits, places, ledgers, strict=True):
        if wait.due_at is not None and ledger is None:
            _set_timer(batch, request, wait, place)
    inbox = _inbox(batch, request, places)
    decision = decide_suspend([_label(w) for w in request.waits], [_label(w) for w, _message in inbox])
    if decision.answered is None:
        _suspend(batch, request, places, ledgers)
        return None
    at = decision.answered
    guid, kind, payload = inbox[0][1][:3]
    answer = Answer(guid, payload, kind == "timer", at)
    # The others are opened all the same, with their timers running: what waits together begins together.
    opened = _open(batch, request, places, ledgers, but=at)
    if opened:
        batch.many("open_more", [(*request.fence[:2], opened)], request.fence)
    taking = _Taking(request.fence, request.driver, request.fact.chain, request.fact.at)
    _take(batch, taking, request.waits[at], answer, places[at], ledgers[at])
    return answer


Place: TypeAlias = tuple[str, int, str, int]


class _Taking(NamedTuple):
    """Who takes an answer, and when."""

    fence: Fence
    driver: str
    chain: Chain
    at: int


def _label(wait: Wait) -> str:
    return f"{wait.name}#{wait.occurrence}"


def _digits_of(batch: Writing, place: Place) -> int | None:
    """Return the digits of a wait that is open, or None for one that is not yet."""
    rows = batch.rows("open_wait", place)
    return int(rows[0][0]) if rows else None


def _inbox(batch: Writing, request: Await, places: list[Place]) -> list[tuple[Wait, tuple[Any, ...]]]:
    """Return for each wait the message that would answer it, the driver first and then by arrival."""
    found = []
    for wait, place in zip(request.waits, places, strict=True):
        rows = batch.rows("answer", (*place, wait.kind, batch.wall, request.driver))
        found += [(wait, row) for row in rows]
    return sorted(found, key=lambda each: (each[1][0] != request.driver, *each[1][3:]))


def _open(
    batch: Writing, request: Await, places: list[Place], ledgers: list[int | None], *, but: int | None = None
) -> int:
    """Open those waits that are not open yet, all but one that is answered; return how many that were."""
    opened = 0
    for index, (wait, place) in enumerate(zip(request.waits, places, strict=True)):
        if ledgers[index] is None and index != but:
            insist(batch, "insert_wait", (*place, wait.kind, request.fence.attempt, batch.wall))
            opened += 1
    return opened


def joined(ledger: int) -> int:
    """Return the digits of a group that its parent has joined."""
    return int(ActivityLedger(ledger).mark_tasks())


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
        batch.wall,
    )
    if not batch.changed("insert_message", row):
        if batch.rows("message", (request.guid,)):
            return Delivered.KNOWN
        return Delivered.DROPPED if batch.rows("cancellable", (request.job_id,)) else Delivered.ABSENT
    woke = batch.changed("wake", (request.job_id, batch.wall, request.name, "wait"))
    return Delivered.WOKE if woke else Delivered.KEPT


def close_waits(batch: Writing, request: EndJob) -> None:
    """Close a job that has waited: drop what is open, and let the driving message be the closer."""
    job_id = request.fence.job_id
    still_open = drop_open(batch, job_id, request.fence.attempt, request.driver)
    if request.driver == "start":
        # Its own step 2 follows in `end_job`, which expects the start to be the last obligation.
        batch.many("open_more", [(*request.fence[:2], -still_open)], request.fence)
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
        batch.many("close_start", [(*fence[:2], delta, batch.wall)], fence)
        return
    if delta is None:
        batch.many("open_more", [(*fence[:2], opened)], fence)
        return
    if not marked:
        insist(batch, "mark_work", (driver, job_id))
    _count_down(batch, job_id, driver, delta)
    insist(batch, "acknowledge", (driver, job_id, batch.wall))


def _consumed(batch: Writing, job_id: str, guid: str) -> tuple[bool, bool]:
    """Return whether the work of a message is marked as durable, and whether the message is taken."""
    found = batch.rows("consumed", (guid, job_id))
    return (bool(found[0][0]), bool(found[0][1])) if found else (False, False)


def timer_of(place: Place) -> str:
    """Return the identifier of the timer of a wait."""
    job_id, dimension, name, occurrence = place
    return f"{job_id}:{dimension}:{name}#{occurrence}:timer"


def _set_timer(batch: Writing, request: Await, wait: Wait, place: Place) -> None:
    assert wait.due_at is not None
    due_at = batch.moment(wait.due_at, request.fact.at)
    insist(batch, "insert_message", (timer_of(place), *place, "timer", None, due_at, batch.wall))


def answered(wait: Wait, payload: str | None, ledger: int = ANSWERED) -> tuple[str, str]:
    """Return the result that a wait keeps, and the payload of the fact that it was answered."""
    result = "null" if payload is None else payload
    return result, step_payload(wait.name, wait.occurrence, "SUCCEEDED", ledger, result, None, None)


def _take(
    batch: Writing, taking: _Taking, wait: Wait, answer: Answer, place: Place, digits: int | None
) -> None:
    """Give the wait its result and the message its marks; a driver keeps its obligation to the end."""
    fence, driver, chain, at = taking
    job_id, attempt = fence.job_id, fence.attempt
    opened = digits is not None
    ledger = joined(digits) if wait.kind == "group" and digits is not None else ANSWERED
    result, payload = answered(wait, answer.payload, ledger)
    event = batch.placed(Fact(chain, wait.kind, at, attempt, payload))
    ending = (result, None, attempt, event.at, event.n, event.prev_hash, event.event_hash)
    if wait.kind == "group":
        batch.many("join_group", [(*place, result, *ending[2:], ledger)], fence)
    elif opened:
        batch.many("answer_wait", [(*place, *ending)], fence)
    else:
        batch.many("insert_answered_wait", [(*place, *ending, wait.kind)], fence)
    insist(batch, "mark_work", (answer.guid, job_id))
    if not answer.timed_out:
        batch.run("acknowledge_loser", (timer_of(place), job_id, batch.wall))
    if answer.guid != driver:
        _count_down(batch, job_id, answer.guid, -1 if opened else 0)
        insist(batch, "acknowledge", (answer.guid, job_id, batch.wall))


def _suspend(batch: Writing, request: Await, places: list[Place], ledgers: list[int | None]) -> None:
    """Open what is not open yet, and end the attempt until a message or the first timer of these waits."""
    fence = request.fence
    opened = _open(batch, request, places, ledgers)
    settle_driver(batch, fence, request.driver, opened=opened)
    timers = [batch.rows("timer_due", place)[0][0] for place in places]
    due_at = min((due for due in timers if due is not None), default=None)
    batch.end_attempts([EndAttempt(fence, AbortReason.SUSPENDED, False, due_at, None, None, request.fact)])


def _count_down(batch: Writing, job_id: str, guid: str, delta: int) -> None:
    if batch.count_down(CountDown(job_id, 0, "", 0, guid, delta, 0)) is None:
        raise InvariantBroken(f"job {job_id} has ended while message {guid} was at work", job_id=job_id)
