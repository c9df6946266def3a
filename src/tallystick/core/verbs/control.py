"""Turning, holding, resuming: what a job goes on with, or does not; and ends of many jobs that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tallystick.core.audit.job_view import AbortReason
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.ledger.decisions import settle_delta
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.pictures import AGAIN, JobFacts, Message, Now, Picture, Pictures, turn_of
from tallystick.core.plans import (
    NO_VALUES,
    Decision,
    DropInbox,
    EndAlike,
    InsertAttempt,
    InsertMessage,
    JobValues,
    MoveAttempt,
    MoveJob,
    MoveSemaphore,
    Plan,
    Refusal,
    Relook,
)
from tallystick.core.requests import CancelJob, CancelUnclaimed, Cycle, EndJob
from tallystick.core.values import Fact
from tallystick.core.verbs import asking
from tallystick.core.verbs.control_requests import HoldJob, ResumeJob
from tallystick.core.verbs.effects.answering import asked_again, before_end
from tallystick.core.verbs.endings import CANCELLED, cancel, end_job, fact_of, with_dropped
from tallystick.core.verbs.holds import Held, Hold, Resumed, decide_hold, decide_resume
from tallystick.core.verbs.protocol.remote import rearmed, withdraw
from tallystick.core.verbs.settling import broken, driver_of, entered, settle, stale
from tallystick.core.verbs.waiting import RUNNING, SUSPENDED
from tallystick.errors import NotFound


def turn(  # noqa: PLR0911 (a line for each refusal)
    pictures: Pictures, request: Cycle, now: Now
) -> Decision:
    """End the segment by a turn of the same job; one that was asked to end ends instead."""
    fence = request.fence
    picture = pictures.held(fence)
    if picture is None:
        return stale(fence)
    if picture.has_unseen_remotes:
        return Relook(fence.job_id)
    job = picture.job
    if job.state == JobState.CANCELLING:
        return _end_instead(pictures, request, picture, now)
    guid = turn_of(job.job_id, job.dimension + 1)
    driver = _refuse_turning(picture, guid) or driver_of(picture, request.driver)
    if isinstance(driver, Refusal):
        return driver
    unended = before_end(pictures, picture, fence, request.fact, now)
    if isinstance(unended, (Plan, Relook)):
        return unended
    still_open = len(picture.open_activities())
    delta = settle_delta(
        starts=driver.enters_root, consumed=driver.is_consumed, opened=1 - still_open, finished=True
    )
    assert delta is not None, "a segment that turns is over"
    settling = settle(job, driver, delta, closes=False, at=now.wall)
    if isinstance(settling, Refusal):
        return settling
    dimension = job.dimension + 1
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    word = Message(guid, job.job_id, dimension, AGAIN, 1, "resume", None, None, 0, 0, *inbox)
    after = settling.job._replace(dimension=dimension, ready_at=now.wall, rev=settling.job.rev + 1)
    fact, dropped = with_dropped(request.fact, picture)
    keep = "" if driver.message is None else driver.message.guid
    return Plan(
        (
            *unended,
            *settling.writes,
            *dropped,
            *withdraw(picture),
            DropInbox(job.job_id, (keep, guid), signals=False),
            InsertMessage(word),
            MoveAttempt(*fence, RUNNING, SUSPENDED, AbortReason.SUSPENDED, charged=False, live=True),
            MoveJob(after, settling.job.rev, fact, JobValues(payload=request.payload)),
        ),
        wakes=True,
    )


def _refuse_turning(picture: Picture, guid: str) -> Refusal | None:
    """Refuse a turn whose word is there already, or cannot enter the root when it is claimed."""
    job = picture.job
    if guid in picture.messages:
        return broken(job.job_id, f"it turns, and the word {guid!r} is there already")
    countable = entered(job.job_id, "the root", job.root_ledger, 0)
    return countable if isinstance(countable, Refusal) else None


def _end_instead(pictures: Pictures, request: Cycle, picture: Picture, now: Now) -> Decision:
    fact = request.fact
    end = EndJob.of(
        request.fence,
        JobState.CANCELLED,
        Fact(fact.chain, "cancel", fact.at, fact.attempt, CANCELLED),
        driver=request.driver,
        waited=True,
        parent=picture.job.parent,
        reason=AbortReason.CANCELLED,
    )
    decision = end_job(pictures, end, now)
    return decision._replace(outcome=end) if isinstance(decision, Plan) else decision


def cancel_unclaimed(pictures: Pictures, request: CancelUnclaimed, now: Now) -> Plan:
    """End jobs that no worker ever held: of those that are alike one is decided, and the others end alike."""
    alike: dict[tuple[object, ...], list[Picture]] = {}
    for job_id in request.job_ids:
        picture = pictures.get(job_id)
        if picture is not None and picture.lease is None and not (picture.activities or picture.messages):
            # All that a decision looks at but the identifier.
            alike.setdefault(picture.job[1:], []).append(picture)
    ends: list[EndAlike] = []
    for first, *others in alike.values():
        if not _is_unclaimed(pictures, first.job, now):
            continue
        decided = cancel(pictures, CancelJob(first.job.job_id, CANCEL_GRACE_MS, force=True), now)
        if isinstance(decided, Plan) and (end := _as_list(decided, (first, *others))) is not None:
            ends.append(end)
    return Plan(tuple(ends), frozenset(chain.job_id for end in ends for chain in end.chains))


def _is_unclaimed(pictures: Pictures, job: JobFacts, now: Now) -> bool:
    """Tell whether a job was asked to end before any worker held it, and no group counts its end."""
    if job.state != JobState.CANCELLING or job.attempt or not job.is_ending(now) or job.inbox_end:
        return False
    home = None if job.parent is None else pictures.get(job.parent[0])
    return home is not None and home.job.completed_at is not None


def _as_list(plan: Plan, alike: Sequence[Picture]) -> EndAlike | None:
    """Return the end of one job as the end of all its like; None if it is more than a plain end."""
    match plan.writes:
        case (
            InsertMessage(),
            MoveSemaphore(rev=rev, message=word),
            InsertAttempt() as attempt,
            DropInbox(),
            MoveJob() as moved,
            InsertMessage(told),
        ):
            chains = tuple(picture.chain() for picture in alike)
            return EndAlike(moved._replace(rev=rev), attempt, word, told, chains)
        case _:
            return None


def hold(pictures: Pictures, request: HoldJob, now: Now) -> Decision:
    """Set the flag, and write the fact unless a live attempt will."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return _absent(request.job_id)
    job, live = picture.job, picture.lease is not None
    if request.since is not None and (job.attempt != request.since or live):
        return Plan((), Held.MOVED)
    final, cancelling = JobState(job.state) in JOB.final, job.state == JobState.CANCELLING
    verdict = decide_hold(final=final, cancelling=cancelling, held=job.hold is not None, live=live)
    match verdict:
        case Held.ALREADY | Held.ENDED | Held.MOVED:
            return Plan((), verdict)
        case Held.HELD | Held.ASKED:
            told = {"hold": request.hold.value, "why": request.why, **asking.by(request.by)}
            fact = _fact(picture, "hold", told, now)
            after = job._replace(hold=request.hold.value, rev=job.rev + 1)
            # A job that runs stops soon only if its worker hears of it.
            about = JobValues(hold_reason=request.why)
            return Plan((MoveJob(after, job.rev, fact, about),), verdict, wakes=verdict is Held.ASKED)
    assert_never(verdict)


def resume(pictures: Pictures, request: ResumeJob, now: Now) -> Decision:
    """Clear the flag, and write the fact unless a live attempt is the author now."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return _absent(request.job_id)
    job = picture.job
    verdict = decide_resume(final=JobState(job.state) in JOB.final, held=job.hold is not None)
    match verdict:
        case Resumed.ENDED | Resumed.NOT_HELD:
            return Plan((), verdict)
        case Resumed.FREE:
            fact = _fact(picture, "resume", {"hold": job.hold, **asking.by(request.by)}, now)
            after = job._replace(hold=None, rev=job.rev + 1)
            moved = MoveJob(after, job.rev, fact, NO_VALUES)
            again = asked_again(picture, now) if job.hold == Hold.IN_DOUBT else ()
            return Plan((*rearmed(picture, now), *again, moved), verdict, wakes=True)
    assert_never(verdict)


def _fact(picture: Picture, kind: str, payload: dict[str, object], now: Now) -> Fact | None:
    """Return the fact of a request that does not hold the job; None when the holder is the author."""
    if picture.lease is not None:
        return None
    return fact_of(picture, kind, picture.job.attempt, payload, now)


def _absent(job_id: str) -> Refusal:
    return Refusal(NotFound(f"there is no job {job_id}", job_id=job_id))
