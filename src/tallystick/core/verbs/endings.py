"""The end of a job, the same for all: by its function, by a sweep, or because it was asked to end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, assert_never

import msgspec

from tallystick.core.audit.fingerprints import DROPPED, ENDED, of_dropped, of_end
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.ledger.decisions import Cancellation, Reclaim, close_delta, decide_cancel, decide_end
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.machine import Followed
from tallystick.core.pictures import CANCEL, JobFacts, Lease, Message, Now, Picture, Pictures, cancel_of
from tallystick.core.plans import (
    NO_VALUES,
    Decision,
    DropActivities,
    DropInbox,
    InsertAttempt,
    InsertMessage,
    JobValues,
    MoveAttempt,
    MoveJob,
    Plan,
    Refusal,
    Relook,
    Write,
)
from tallystick.core.remote.requests import CancelProtocol
from tallystick.core.remote.row_prints import of_remote
from tallystick.core.requests import CancelJob, EndJob
from tallystick.core.values import Fact, Fence
from tallystick.core.verbs import asking
from tallystick.core.verbs.asking import EndedNow, ask, ask_descendants, is_refused, let_finish, why_asked
from tallystick.core.verbs.children import child_ended
from tallystick.core.verbs.effects.answering import abandoned, before_end, is_waited_for, let_answer, unneeded
from tallystick.core.verbs.protocol.remote import ends_at, take_unheard, withdraw
from tallystick.core.verbs.settling import Driver, broken, driver_of, entered, settle, stale
from tallystick.errors import LedgerCeiling, NotFound, TallyError

# By which moves a job comes to an end, and the attempt that runs it with it.
_JOB_ENDS = {JobState.SUCCEEDED: "succeed", JobState.FAILED_FINAL: "fail", JobState.CANCELLED: "settle"}
_RUNNING: Final = AttemptState.IN_PROGRESS
_NEVER_MADE: Final = ATTEMPT.follow(AttemptState.LEASED, "abort")
# By the words of rows: to make a member of an enumeration of each would cost more than to look it up.
_ATTEMPT_ENDS: Final[Mapping[str, AttemptState]] = {
    AttemptState.DONE: ATTEMPT.follow(_RUNNING, "commit", "finish").target,
    AttemptState.ABORTED: ATTEMPT.follow(_RUNNING, "abort").target,
}


def end_job(pictures: Pictures, request: EndJob, now: Now) -> Decision:
    """Close a job: what it has open is dropped, the message that drove its last segment is the closer."""
    fence = request.fence
    picture = pictures.held(fence)
    if picture is None:
        return stale(fence)
    if picture.has_unseen_remotes:
        return Relook(fence.job_id)
    written = as_asked(request, cancelling=picture.job.state == JobState.CANCELLING, code=picture.job.code)
    unended = before_end(pictures, picture, fence, request.fact, now)
    if isinstance(unended, (Plan, Relook)):
        return unended
    ended = _ATTEMPT_ENDS[written.attempt_status]
    attempt = MoveAttempt(*fence, _RUNNING, ended, written.reason, written.charged, live=True)
    driver = driver_of(picture, request.driver)
    if isinstance(driver, Refusal):
        return driver
    values = JobValues(
        result=written.result,
        error=written.error,
        error_code=written.error_code,
        error_message=written.error_message,
    )
    closed = close(pictures, picture, driver, End(written.state, written.fact, values, attempt), now)
    if isinstance(closed, Refusal):
        return closed
    return Plan((*unended, *closed), None if written is request else written, wakes=_wakes(picture))


def as_asked(request: EndJob, *, cancelling: bool, code: str | None = None) -> EndJob:
    """Return an end as it is written: a job that was asked to end is cancelled, whatever its function did."""
    if code is not None:
        request = request._replace(error_code=code)
    ending = decide_end(state=request.state, attempt=request.attempt_status, cancelling=cancelling)
    if ending.job == request.state:
        return request if code is None else _told_again(request, request.fact.payload)
    cancelled = request._replace(
        state=ending.job,
        attempt_status=ending.attempt,
        reason=AbortReason.CANCELLED,
        charged=False,
        result=None,
        fact=request.fact._replace(type="cancel"),
    )
    return _told_again(cancelled, CANCELLED)


def _told_again(request: EndJob, text: str) -> EndJob:
    """Return an end whose fact says what comes of the job now, with these words for the rest."""
    ended = of_end(request.result, request.error, request.error_code, request.error_message)
    told = {**msgspec.json.decode(text), ENDED: ended}
    return request._replace(fact=request.fact._replace(payload=msgspec.json.encode(told).decode()))


class End(NamedTuple):
    """How a job is to end."""

    state: str
    fact: Fact
    values: JobValues
    attempt: MoveAttempt | InsertAttempt
    # What children that run have to clean up.
    grace_ms: int = CANCEL_GRACE_MS


def close(
    pictures: Pictures, picture: Picture, driver: Driver, end: End, now: Now
) -> tuple[Write, ...] | Refusal:
    """Return the writes that close a job by the message that drove it; a child is counted by its parent."""
    job = picture.job
    still_open = len(picture.open_activities())
    delta = close_delta(starts=driver.enters_root, consumed=driver.is_consumed, still_open=still_open)
    settling = settle(job, driver, delta, closes=True, at=now.wall)
    if isinstance(settling, Refusal):
        return settling
    keep = "" if driver.message is None else driver.message.guid
    return (*settling.writes, *_closed(pictures, settling.job, keep, end, now))


def _closed(pictures: Pictures, job: JobFacts, keep: str, end: End, now: Now) -> tuple[Write, ...]:
    """Return what is the same for every end: the attempt, what was open, the inbox, the row, the parent."""
    target = way(job, end.state).target
    after = job._replace(
        state=target,
        attempt=end.attempt.attempt,
        ready_at=None,
        hold=None,
        cancel_at=job.cancel_at if target is not JobState.CANCELLED else job.cancel_at or now.wall,
        completed_at=now.wall,
        rev=job.rev + 1,
    )
    fact, dropped = with_dropped(end.fact, pictures[job.job_id])
    withdrawn = withdraw(pictures[job.job_id])
    counted = () if job.parent is None else child_ended(pictures, job.job_id, job.parent, target, now)
    # Its children end with it: asked in this bundle, none of them is claimed after it.
    below = ask_descendants(pictures[job.job_id], end.grace_ms, job.code, now)
    return (
        end.attempt,
        *dropped,
        *withdrawn,
        DropInbox(job.job_id, (keep, keep), signals=True),
        MoveJob(after, job.rev, fact, end.values),
        *counted,
        *below,
    )


def with_dropped(fact: Fact, picture: Picture) -> tuple[Fact, tuple[DropActivities, ...]]:
    """Return what drops everything that a job has open, and its fact with what that is."""
    still_open = picture.open_activities()
    if not still_open:
        return fact, ()
    prints = {place: of_remote(step) for place, step in picture.remotes.items()}
    told = {**msgspec.json.decode(fact.payload), DROPPED: of_dropped(still_open, prints)}
    payload = msgspec.json.encode(told).decode()
    return fact._replace(payload=payload), (DropActivities(picture.job.job_id, len(still_open)),)


def way(job: JobFacts, target: str, *, told: bool = False) -> Followed[JobState]:
    """Return by which moves a job comes to its end, from where it stands or (`told`) as its fact tells it.

    The request to end is no fact before the job follows it.
    """
    return _way(job.state, target, begun=bool(job.attempt), told=told)


@lru_cache(maxsize=64)
def _way(row: str, end: str, *, begun: bool, told: bool) -> Followed[JobState]:
    state, target = JobState(row), JobState(end)
    if told and state is JobState.CANCELLING:
        state = JobState.IN_PROGRESS if begun else JobState.QUEUED
    if target is JobState.CANCELLED and state is not JobState.CANCELLING:
        return JOB.follow(state, "cancel", "settle")
    if target is JobState.FAILED_FINAL and state is JobState.QUEUED:
        return JOB.follow(state, "dispatch", "fail")
    return JOB.follow(state, _JOB_ENDS[target])


CANCELLED = msgspec.json.encode(
    {
        "job": JOB.follow(JobState.IN_PROGRESS, "cancel", "settle").path,
        "attempt": ATTEMPT.follow(AttemptState.IN_PROGRESS, "abort").path,
        ENDED: of_end(),
    }
).decode()
"""What the fact of a job says that ends by itself after it was asked to."""


def cancel(  # noqa: PLR0911 (a line for each verdict)
    pictures: Pictures, request: CancelJob, now: Now
) -> Decision:
    """Cancel a job as far as it can be now; of a protocol job the outcome is what to ask instead."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return Refusal(NotFound(f"there is no job {request.job_id}", job_id=request.job_id))
    job, lease = picture.job, picture.lease
    if is_refused(job, request, now):
        return Plan((), JobState(job.state))
    if job.is_protocol:
        return Plan((), CancelProtocol(request.job_id, request.force))
    verdict = decide_cancel(
        final=JobState(job.state) in JOB.final,
        held=lease is not None,
        committed=lease is not None and lease.status == AttemptState.COMMITTED,
        live=lease is not None and lease.live,
        forced=request.force,
    )
    match verdict:
        case Cancellation.NOTHING:
            return Plan((), JobState(job.state))
        case Cancellation.ASK:
            return ask(picture, request, now)
        case Cancellation.FINISH:
            assert lease is not None, "what is committed has an attempt"
            return finish(pictures, picture, lease, now)
        case Cancellation.END:
            return _ended(pictures, picture, request, now)
    assert_never(verdict)


def _ended(pictures: Pictures, picture: Picture, request: CancelJob, now: Now) -> Decision:
    """End a job at once; one whose root has no entry left for the message that ends it has failed."""
    lease = picture.lease
    if is_waited_for(picture) and not request.abandon:
        return let_answer(picture, request, now)
    if lease is None:
        until = ends_at(picture, now)
        if until is not None:
            return let_finish(picture, request, until, now)
        ended = _at_once(pictures, picture, request, now)
    else:
        told = {"forced": True, **_because(picture.job.code), **abandoned(picture), **asking.by(request.by)}
        cancelled = Loss("cancel", JobState.CANCELLED, "abort", AbortReason.CANCELLED, told)
        ended = end_lost(pictures, picture, lease, cancelled, now)
    if isinstance(ended, Refusal) and isinstance(ended.error, LedgerCeiling):
        ended = escalate(pictures, picture.job.job_id, ended.error, now)
        return ended._replace(outcome=EndedNow(JobState.FAILED_FINAL))
    return ended._replace(outcome=EndedNow(JobState.CANCELLED)) if isinstance(ended, Plan) else ended


def _because(code: str | None) -> dict[str, object]:
    return {} if code is None else {"code": code}


class Loss(NamedTuple):
    """How a job ends that its attempt does not end: by which fact and moves, and what is told of it."""

    kind: str
    state: JobState
    trigger: str
    reason: AbortReason | None
    told: dict[str, object]
    values: JobValues = NO_VALUES
    charged: bool = False


def end_lost(pictures: Pictures, picture: Picture, lease: Lease, loss: Loss, now: Now) -> Decision:
    """End a job as its function would have, by the message that drives it; the outcome is its state."""
    driver = driver_of(picture, lease.guid)
    if isinstance(driver, Refusal):
        return driver
    job = picture.job
    ended = ATTEMPT.follow(AttemptState(lease.status), loss.trigger)
    fence = Fence(job.job_id, lease.attempt, lease.lease_id)
    attempt = MoveAttempt(*fence, lease.status, ended.target, loss.reason, loss.charged, live=lease.live)
    paths = {"job": way(job, loss.state, told=True).path, "attempt": ended.path}
    told = {
        **paths,
        **loss.told,
        **came_of(loss.values, job.code),
    }
    if loss.trigger == "finish":
        # What came of it was committed before, and only its row says what.
        del told[ENDED]
    fact = fact_of(picture, loss.kind, lease.attempt, told, now)
    closed = close(pictures, picture, driver, End(loss.state, fact, loss.values, attempt), now)
    if isinstance(closed, Refusal):
        return closed
    return Plan((*unneeded(pictures, picture, now), *closed), loss.state, wakes=_wakes(picture))


def finish(pictures: Pictures, picture: Picture, lease: Lease, now: Now) -> Decision:
    """End a job whose work is committed: its result is in its row, and its function is not called."""
    asked = picture.job.state == JobState.CANCELLING
    state = JobState.CANCELLED if asked else JobState.SUCCEEDED
    committed = Loss("reclaim", state, "finish", None, {"verdict": Reclaim.FINISH.name})
    return end_lost(pictures, picture, lease, committed, now)


def _at_once(pictures: Pictures, picture: Picture, request: CancelJob, now: Now) -> Decision:
    """End a job that no worker runs: a message of the root, which it is, closes whatever is open."""
    job = picture.job
    counted = len(picture.open_activities())
    taken = take_unheard(picture, now)
    if isinstance(taken, Refusal):
        return taken
    owed = sum(message.is_owed for message in picture.messages.values()) + (job.start_acked_at is None)
    if cancel_of(job.job_id) in picture.messages:
        return broken(job.job_id, "it has the message that ends it, and has not ended")
    if job.semaphore != counted + owed:
        return broken(job.job_id, f"{counted} activities are open, and its semaphore counts {job.semaphore}")
    found = entered(job.job_id, "the root", job.root_ledger, 0)
    if isinstance(found, Refusal):
        return found
    word = Message(
        cancel_of(job.job_id), job.job_id, job.dimension, CANCEL, 1, "resume", None, None, found.guid, 0,
        max(now.wall, job.inbox_at), job.inbox_end + 1, None,
    )  # fmt: skip
    values = why_asked(job, request)
    rooted = job._replace(
        root_ledger=found.activity, start_acked_at=job.start_acked_at or now.wall, code=values.error_code
    )
    settling = settle(rooted, Driver(word, None), -job.semaphore, closes=True, at=now.wall)
    if isinstance(settling, Refusal):
        return settling
    attempt = InsertAttempt(job.job_id, job.attempt + 1, _NEVER_MADE.target, AbortReason.CANCELLED, word.guid)
    text = _told_of_cancel(job.state, values.error_code, begun=bool(job.attempt), forced=request.force)
    if left := {**abandoned(picture), **asking.by(request.by)}:
        text = msgspec.json.encode({**msgspec.json.decode(text), **left}).decode()
    fact = Fact(picture.chain(), "cancel", now.wall, attempt.attempt, text)
    end = End(JobState.CANCELLED, fact, values, attempt, request.grace_ms)
    closed = _closed(pictures, settling.job, word.guid, end, now)
    writes = (*unneeded(pictures, picture, now), *taken, InsertMessage(word), *settling.writes, *closed)
    return Plan(writes, JobState.CANCELLED, wakes=_wakes(picture))


@lru_cache(maxsize=64)
def _told_of_cancel(state: str, code: str | None, *, begun: bool, forced: bool) -> str:
    """Return what the fact of a job says that ended before a worker ran it: alike for all its siblings."""
    path = _way(state, JobState.CANCELLED, begun=begun, told=True).path
    came = came_of(JobValues(error_code=code))
    told = {"job": path, "attempt": _NEVER_MADE.path, "forced": forced, **_because(code), **came}
    return msgspec.json.encode(told).decode()


def _wakes(picture: Picture) -> bool:
    """Tell whether the end of a job concerns other jobs: its parent may go on, its children are to end."""
    return picture.job.parent is not None or picture.has_open_children


def fact_of(picture: Picture, kind: str, attempt: int, payload: Mapping[str, object], now: Now) -> Fact:
    """Return a fact of a job whose author does not hold it."""
    return Fact(picture.chain(), kind, now.wall, attempt, msgspec.json.encode(payload).decode())


def came_of(values: JobValues, code: str | None = None) -> dict[str, object]:
    """Return what a fact that ends a job says of these values; a row that is given no code keeps its own."""
    return {ENDED: of_end(values.result, values.error, values.error_code or code, values.error_message)}


def failed_with(kind: str, message: str, code: str, tries: int = 1) -> JobValues:
    """Return what the row of a job says about the error that ended it."""
    about = {"type": kind, "message": message, "code": code, "tries": tries}
    return JobValues(error=msgspec.json.encode(about).decode(), error_code=code, error_message=message)


def escalate(pictures: Pictures, job_id: str, error: TallyError, now: Now) -> Plan:
    """End a job whose ledger can count no further entry: it has failed, and the full ledger stays as it is.

    No message closes it: what waits is acknowledged, what is open is dropped.
    """
    picture = pictures[job_id]
    job, lease = picture.job, picture.lease
    began = AttemptState.LEASED if lease is None else AttemptState(lease.status)
    aborted = ATTEMPT.follow(began, "abort")
    attempt: MoveAttempt | InsertAttempt
    if lease is None:
        attempt = InsertAttempt(job_id, job.attempt + 1, aborted.target, AbortReason.FATAL, "")
    else:
        about = (aborted.target, AbortReason.FATAL, False, lease.live)
        attempt = MoveAttempt(job_id, lease.attempt, lease.lease_id, lease.status, *about)
    state = JobState(job.state)
    target = JobState.CANCELLED if state is JobState.CANCELLING else JobState.FAILED_FINAL
    told = {
        "job": way(job, target, told=True).path,
        "attempt": aborted.path,
        "reason": AbortReason.FATAL.value,
        "charged": False,
        "error": {"code": error.code, "message": error.message},
    }
    kind = "cancel" if target is JobState.CANCELLED else "fail"
    values = failed_with(type(error).__name__, error.message, error.code)
    fact = fact_of(picture, kind, attempt.attempt, {**told, **came_of(values)}, now)
    end = End(target, fact, values, attempt)
    return Plan(_closed(pictures, job._replace(semaphore=0), "", end, now), wakes=True)
