"""Reclaiming: what becomes of an attempt whose lease has run out, and of its job."""

from __future__ import annotations

from typing import Final, assert_never

from tallystick.core.audit.job_view import AbortReason, attempts_allowed
from tallystick.core.ledger.decisions import Reclaim, decide_reclaim
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import Lease, Now, Picture, Pictures
from tallystick.core.plans import NO_VALUES, Decision, JobValues, MoveAttempt, MoveJob, Plan
from tallystick.core.requests import ReclaimAttempt
from tallystick.core.verbs.control import hold
from tallystick.core.verbs.control_requests import HoldJob
from tallystick.core.verbs.effects.answering import is_waited_for
from tallystick.core.verbs.effects.doubting import find, lost
from tallystick.core.verbs.endings import Loss, end_lost, fact_of, failed_with, finish
from tallystick.core.verbs.holds import Hold
from tallystick.defaults import ATTEMPTS

SPENT: Final = "ATTEMPTS_SPENT"

_UNREADABLE: Final = (
    "a worker was lost over this job, and its row does not say how many attempts it may have: the column "
    f'"options" cannot be read. Put {{"attempts_max":{ATTEMPTS}}} there and resume the job, or '
    "cancel it"
)


def reclaim(pictures: Pictures, request: ReclaimAttempt, now: Now) -> Decision:
    """Judge an attempt as it stands now; the outcome is the verdict."""
    picture = pictures.get(request.fence.job_id)
    if picture is None:
        return Plan((), Reclaim.LEAVE)
    lease = _held_by(picture, request.unit)
    if lease is None or (lease.attempt, lease.lease_id) != request.fence[1:]:
        return Plan((), Reclaim.LEAVE)
    job, past = picture.job, picture.past
    # An effect of a job that a person has ended stays open, and is asked for like any other.
    if past is None or (JobState(job.state) in JOB.final and not request.unit):
        return Plan((), Reclaim.LEAVE)
    budget = attempts_allowed(past.options)
    verdict = decide_reclaim(
        status=lease.status,
        expired=not lease.live,
        effect=request.unit != "",
        held=job.hold is not None,
        cancelling=job.state == JobState.CANCELLING,
        refused=request.refused is not None,
        charged=0 if request.excused else past.charged + 1,
        budget=budget,
        waits=is_waited_for(picture),
        runs=picture.lease is not None,
    )
    decision = _act(pictures, picture, lease, verdict, request, now, budget)
    return decision._replace(outcome=verdict) if isinstance(decision, Plan) else decision


def _held_by(picture: Picture, unit: str) -> Lease | None:
    """Return the attempt at a job, or at an effect of it that is open."""
    if not unit:
        return picture.lease
    found = find(picture, unit)
    if found is None:
        return None
    row, live = found
    return Lease(row.attempt, row.lease_id, row.state, live, row.exec_id)


def _act(  # noqa: PLR0911 (one line for each verdict)
    pictures: Pictures,
    picture: Picture,
    lease: Lease,
    verdict: Reclaim,
    request: ReclaimAttempt,
    now: Now,
    budget: int | None,
) -> Decision:
    reason = AbortReason.RELEASED if request.excused else AbortReason.EXPIRED
    told: dict[str, object] = {"reason": reason.value, "verdict": verdict.name}
    match verdict:
        case Reclaim.LEAVE:
            return Plan(())
        case Reclaim.FINISH:
            return finish(pictures, picture, lease, now)
        case Reclaim.IN_DOUBT:
            return lost(picture, request.unit, now)
        case Reclaim.HOLD:
            return _held(pictures, picture, lease, request, now)
        case Reclaim.RETRY:
            return _released(picture, lease, "reclaim", reason, told, now, charged=not request.excused)
        case Reclaim.FAIL:
            assert budget is not None, "a budget that is spent was read"
            return end_lost(pictures, picture, lease, _spent(budget, reason, told), now)
        case Reclaim.SETTLE:
            settled = Loss("reclaim", JobState.CANCELLED, "abort", AbortReason.CANCELLED, told)
            return end_lost(pictures, picture, lease, settled, now)
    assert_never(verdict)


def _spent(budget: int, reason: AbortReason, told: dict[str, object]) -> Loss:
    message = f"{budget} attempts in a row ended without progress: the worker died or lost its lease"
    values = failed_with("AttemptsSpent", message, SPENT, budget)
    return Loss("reclaim", JobState.FAILED_FINAL, "abort", reason, told, values, charged=True)


def _held(pictures: Pictures, picture: Picture, lease: Lease, request: ReclaimAttempt, now: Now) -> Decision:
    """Stop a job that cannot be judged, or whose end was refused, so that it keeps no other from its turn."""
    kind, why = (Hold.MISMATCH, _UNREADABLE) if request.refused is None else (Hold.REFUSED, request.refused)
    if lease.status == AttemptState.COMMITTED:
        return hold(pictures, HoldJob(picture.job.job_id, kind, why), now)
    told: dict[str, object] = {"hold": kind.value, "why": why}
    return _released(picture, lease, "hold", AbortReason.HELD, told, now, held=(kind, why))


def _released(
    picture: Picture,
    lease: Lease,
    fact: str,
    reason: AbortReason,
    told: dict[str, object],
    now: Now,
    *,
    charged: bool = False,
    held: tuple[Hold, str] | None = None,
) -> Plan:
    """Abort the attempt; its job is as early in the queue as it has waited, and due, whatever clocks say."""
    job, past = picture.job, picture.past
    assert past is not None, "what is judged was looked at"
    ended = ATTEMPT.follow(AttemptState(lease.status), "abort")
    attempt = MoveAttempt(
        job.job_id, lease.attempt, lease.lease_id, lease.status, ended.target, reason, charged, live=False
    )
    after = job._replace(
        ready_at=min(past.created_at, now.wall), hold=held[0].value if held else job.hold, rev=job.rev + 1
    )
    event = fact_of(picture, fact, lease.attempt, {"attempt": ended.path, **told}, now)
    values = JobValues(hold_reason=held[1]) if held else NO_VALUES
    return Plan((attempt, MoveJob(after, job.rev, event, values)), wakes=held is None)
