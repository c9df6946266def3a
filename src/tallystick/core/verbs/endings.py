"""The end of a job, the same for all: by its function, by a sweep, or because it was asked to end."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tallystick.core.decisions import Cancellation, close_delta, decide_cancel, decide_end
from tallystick.core.derive import AbortReason
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import CANCEL, JobFacts, Message, Now, Picture, Pictures, cancel_of
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
    Write,
)
from tallystick.core.requests import CancelJob, EndJob
from tallystick.core.values import Fact, Fence
from tallystick.core.verbs.children import child_ended
from tallystick.core.verbs.settling import Driver, broken, driver_of, entered, settle, stale
from tallystick.errors import LedgerCeiling, NotFound, TallyError

# By which moves a job comes to an end, and its attempt with it.
_JOB_ENDS = {JobState.SUCCEEDED: "succeed", JobState.FAILED_FINAL: "fail", JobState.CANCELLED: "settle"}
_ATTEMPT_ENDS = {AttemptState.DONE: ("commit", "finish"), AttemptState.ABORTED: ("abort",)}


def end_job(pictures: Pictures, request: EndJob, now: Now) -> Decision:
    """Close a job: what it has open is dropped, the message that drove its last segment is the closer."""
    fence = request.fence
    picture = pictures[fence.job_id]
    if refusal := refuse_ending(picture, request):
        return refusal
    written = as_asked(request, cancelling=picture.job.state == JobState.CANCELLING)
    lease = picture.lease
    assert lease is not None, "whoever may end a job has an attempt of it"
    ended = ATTEMPT.follow(AttemptState(lease.status), *_ATTEMPT_ENDS[AttemptState(written.attempt_status)])
    attempt = MoveAttempt(
        *fence, lease.status, ended.target, written.reason, written.charged, live=not request.expired
    )
    driver = driver_of(picture, request.driver)
    if isinstance(driver, Refusal):
        return driver
    values = JobValues(
        result=written.result,
        error=written.error,
        error_code=written.error_code,
        error_message=written.error_message,
    )
    closed = close(
        pictures, picture, driver, _End(JobState(written.state), written.fact, values, attempt), now
    )
    if isinstance(closed, Refusal):
        return closed
    return Plan(closed, None if written is request else written, wakes=picture.job.parent is not None)


def refuse_ending(picture: Picture, request: EndJob) -> Refusal | None:
    """Refuse an end by somebody who does not hold the job, or by a sweep that has looked too early."""
    lease, fence = picture.lease, request.fence
    if lease is None or (lease.attempt, lease.lease_id) != fence[1:] or lease.live is request.expired:
        return stale(fence)
    if request.expired:
        chain = request.fact.chain
        return None if picture.end == (chain.n, chain.head) else stale(fence)
    return None if lease.status == AttemptState.IN_PROGRESS else stale(fence)


def as_asked(request: EndJob, *, cancelling: bool) -> EndJob:
    """Return an end as it is written: a job that was asked to end is cancelled, whatever its function did."""
    ending = decide_end(state=request.state, attempt=request.attempt_status, cancelling=cancelling)
    if ending.job == request.state:
        return request
    fact = request.fact
    return request._replace(
        state=ending.job,
        attempt_status=ending.attempt,
        reason=AbortReason.CANCELLED,
        charged=False,
        result=None,
        fact=Fact(fact.chain, "cancel", fact.at, fact.attempt, CANCELLED),
    )


class _End(NamedTuple):
    """How a job is to end."""

    state: JobState
    fact: Fact
    values: JobValues
    attempt: MoveAttempt | InsertAttempt


def close(
    pictures: Pictures, picture: Picture, driver: Driver, end: _End, now: Now
) -> tuple[Write, ...] | Refusal:
    """Return the writes that close a job by the message that drove it; a child is counted by its parent."""
    job = picture.job
    still_open = len(picture.open_activities())
    delta = close_delta(starts=driver.enters_root, consumed=driver.is_consumed, still_open=still_open)
    settling = settle(job, driver, delta, closes=True, at=now.wall)
    if isinstance(settling, Refusal):
        return settling
    keep = "" if driver.message is None else driver.message.guid
    return (*settling.writes, *_closed(pictures, settling.job, still_open, keep, end, now))


def _closed(
    pictures: Pictures, job: JobFacts, still_open: int, keep: str, end: _End, now: Now
) -> tuple[Write, ...]:
    """Return what is the same for every end: the attempt, what was open, the inbox, the row, the parent."""
    target = JOB.follow(JobState(job.state), *_way(JobState(job.state), end.state)).target
    after = job._replace(
        state=target,
        attempt=end.attempt.attempt,
        ready_at=None,
        hold=None,
        cancel_at=job.cancel_at if target is not JobState.CANCELLED else job.cancel_at or now.wall,
        completed_at=now.wall,
        rev=job.rev + 1,
    )
    dropped = (DropActivities(job.job_id, still_open),) if still_open else ()
    counted = () if job.parent is None else child_ended(pictures, job.job_id, job.parent, target, now)
    return (
        end.attempt,
        *dropped,
        DropInbox(job.job_id, (keep, keep), signals=True),
        MoveJob(after, job.rev, end.fact, end.values),
        *counted,
    )


def _way(state: JobState, target: JobState) -> tuple[str, ...]:
    """Return the triggers from one state of a job to its end."""
    if target is JobState.CANCELLED and state is not JobState.CANCELLING:
        return ("cancel", "settle")
    if target is JobState.FAILED_FINAL and state is JobState.QUEUED:
        return ("dispatch", "fail")
    return (_JOB_ENDS[target],)


def _path(picture: Picture, *, forced: bool, made: bool) -> str:
    """Return what the fact of a cancellation says.

    Only a job that runs is asked to end, and the request is no fact before the job follows it.
    """
    state = JobState(picture.job.state)
    before = JobState.IN_PROGRESS if state is JobState.CANCELLING else state
    born = AttemptState.LEASED if made else AttemptState.IN_PROGRESS
    told = {"job": JOB.follow(before, "cancel", "settle").path, "attempt": ATTEMPT.follow(born, "abort").path}
    return msgspec.json.encode({**told, "forced": forced}).decode()


CANCELLED = msgspec.json.encode(
    {
        "job": JOB.follow(JobState.IN_PROGRESS, "cancel", "settle").path,
        "attempt": ATTEMPT.follow(AttemptState.IN_PROGRESS, "abort").path,
    }
).decode()
"""What the fact of a job says that ends by itself after it was asked to."""


def cancel(pictures: Pictures, request: CancelJob, now: Now) -> Decision:
    """Cancel a job as far as it can be cancelled now."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return Refusal(NotFound(f"there is no job {request.job_id}", job_id=request.job_id))
    job, lease = picture.job, picture.lease
    final = JobState(job.state) in JOB.final
    verdict = decide_cancel(final=final, live=lease is not None, forced=request.force)
    asks = verdict is Cancellation.ASK
    if verdict is Cancellation.NOTHING or (asks and job.state == JobState.CANCELLING):
        return Plan((), JobState(job.state))
    if asks:
        asked = JOB.follow(JobState(job.state), "cancel").target
        cancel_at = now.wall + request.grace_ms
        after = job._replace(state=asked, hold=None, cancel_at=cancel_at, rev=job.rev + 1)
        # Its worker may be another process, and is to hear of it soon.
        return Plan((MoveJob(after, job.rev, None, NO_VALUES),), asked, wakes=True)
    writes = (
        _forced(pictures, picture, now) if lease is not None else _at_once(pictures, picture, request, now)
    )
    if not isinstance(writes, Refusal):
        return Plan(writes, JobState.CANCELLED, wakes=job.parent is not None)
    if not isinstance(writes.error, LedgerCeiling):
        return writes
    # No entry of the root is left for the message that would end it.
    return escalate(pictures, job.job_id, writes.error, now)._replace(outcome=JobState.FAILED_FINAL)


def _forced(pictures: Pictures, picture: Picture, now: Now) -> tuple[Write, ...] | Refusal:
    """End a job whose grace is over: as its function would have, by the message that drives it."""
    lease, job = picture.lease, picture.job
    assert lease is not None, "a job without an attempt needs no force"
    driver = driver_of(picture, lease.guid)
    if isinstance(driver, Refusal):
        return driver
    target = ATTEMPT.follow(AttemptState(lease.status), "abort").target
    fence = Fence(job.job_id, lease.attempt, lease.lease_id)
    attempt = MoveAttempt(*fence, lease.status, target, AbortReason.CANCELLED, charged=False, live=lease.live)
    fact = _fact(picture, lease.attempt, now, forced=True, made=False)
    return close(pictures, picture, driver, _End(JobState.CANCELLED, fact, NO_VALUES, attempt), now)


def _at_once(
    pictures: Pictures, picture: Picture, request: CancelJob, now: Now
) -> tuple[Write, ...] | Refusal:
    """End a job that nobody runs: a message of the root, which it is, closes whatever is open."""
    job = picture.job
    still_open = len(picture.open_activities())
    owed = sum(message.is_owed for message in picture.messages.values()) + (job.start_acked_at is None)
    if cancel_of(job.job_id) in picture.messages:
        return broken(job.job_id, "it has the message that ends it, and has not ended")
    if job.semaphore != still_open + owed:
        return broken(
            job.job_id, f"{still_open} activities are open, and its semaphore counts {job.semaphore}"
        )
    found = entered(job.job_id, "the root", job.root_ledger, 0)
    if isinstance(found, Refusal):
        return found
    word = Message(
        cancel_of(job.job_id), job.job_id, job.dimension, CANCEL, 1, "resume", None, None, found.guid, 0,
        max(now.wall, job.inbox_at), job.inbox_end + 1, None,
    )  # fmt: skip
    rooted = job._replace(root_ledger=found.activity, start_acked_at=job.start_acked_at or now.wall)
    settling = settle(rooted, Driver(word, None), -job.semaphore, closes=True, at=now.wall)
    if isinstance(settling, Refusal):
        return settling
    attempt = InsertAttempt(
        job.job_id,
        job.attempt + 1,
        ATTEMPT.follow(AttemptState.LEASED, "abort").target,
        AbortReason.CANCELLED,
        word.guid,
    )
    fact = _fact(picture, job.attempt + 1, now, forced=request.force, made=True)
    end = _End(JobState.CANCELLED, fact, NO_VALUES, attempt)
    return (
        InsertMessage(word),
        *settling.writes,
        *_closed(pictures, settling.job, still_open, word.guid, end, now),
    )


def _fact(picture: Picture, attempt: int, now: Now, *, forced: bool, made: bool) -> Fact:
    return Fact(picture.chain(), "cancel", now.wall, attempt, _path(picture, forced=forced, made=made))


def escalate(pictures: Pictures, job_id: str, error: TallyError, now: Now) -> Plan:
    """End a job whose ledger can count no further entry: it has failed, and the full ledger stays as it is.

    No message closes it: what waits is acknowledged, what is open is dropped.
    """
    picture = pictures[job_id]
    job, lease = picture.job, picture.lease
    still_open = len(picture.open_activities())
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
        "job": JOB.follow(state, *_way(state, target)).path,
        "attempt": aborted.path,
        "error": {"code": error.code, "message": error.message},
    }
    kind = "cancel" if target is JobState.CANCELLED else "fail"
    fact = Fact(picture.chain(), kind, now.wall, attempt.attempt, msgspec.json.encode(told).decode())
    summary = {"type": type(error).__name__, "message": error.message, "code": error.code}
    text = msgspec.json.encode(summary).decode()
    values = JobValues(error=text, error_code=error.code, error_message=error.message)
    end = _End(target, fact, values, attempt)
    return Plan(_closed(pictures, job._replace(semaphore=0), still_open, "", end, now), wakes=True)
