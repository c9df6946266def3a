"""What remote workers report: ACK, heartbeat, RESULT. One fence for all of them, in one order.

A report is accepted with the current attempt and lease, in flight, before the lease ends. Whatever is not
accepted changes no row. What was accepted is remembered, so that its copies get the same answer for ever.
"""

from __future__ import annotations

import msgspec

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import Heard, ProtocolPlan
from tallystick.core.remote.requests import AckStep, AnswerStep, Callback, RenewStep
from tallystick.core.remote.rows import ProtocolPicture, ProtocolStep
from tallystick.core.retry import backoff_ms
from tallystick.core.verbs.protocol.drafts import PlanDraft, unchanged
from tallystick.core.verbs.protocol.step_drafts import drafted


def ack(picture: ProtocolPicture, request: AckStep | RenewStep, now: Now) -> ProtocolPlan:
    """Begin the work; an ACK that overtakes the note of publishing says that the directive is out."""
    step = fence(picture, request, now)
    if isinstance(step, Heard):
        return unchanged(picture, step)
    if step.state == StepState.IN_PROGRESS:
        return unchanged(picture, Heard.DUPLICATE)
    draft = drafted(picture, now)
    draft.close_directive("publish")
    lease_ms = draft.policy.times_of(step.step_id).lease_ms
    begun = step._replace(lease_expires_at=now.wall + lease_ms, acked_at=now.wall)
    draft.move_step(begun, *_until_begun(step))
    draft.begin()
    return draft.plan(Heard.ACCEPTED, "ack", step=step.step_id)


def renew(picture: ProtocolPicture, request: RenewStep, now: Now) -> ProtocolPlan:
    """Move the lease of a step; a job that was asked to end is given no more time."""
    step = fence(picture, request, now)
    if isinstance(step, Heard):
        return unchanged(picture, step)
    if picture.job.state == JobState.CANCELLING:
        return unchanged(picture, Heard.CANCELLING)
    if step.state != StepState.IN_PROGRESS:
        return ack(picture, request, now)
    draft = drafted(picture, now)
    lease_ms = draft.policy.times_of(step.step_id).lease_ms
    draft.move_step(step._replace(lease_expires_at=now.wall + lease_ms))
    return draft.plan(Heard.ACCEPTED, None)


def answer(picture: ProtocolPicture, request: AnswerStep, now: Now) -> ProtocolPlan:
    """End an attempt by its RESULT, and with it the step, and with the last step the job."""
    step = fence(picture, request, now)
    if isinstance(step, Heard):
        return unchanged(picture, step)
    given = request.answer
    draft = drafted(picture, now)
    draft.close_directive("publish")
    draft.begin()
    begun = _until_begun(step)
    told = step._replace(
        acked_at=now.wall if step.acked_at is None else step.acked_at,
        answers=_remembering(step, given.digest),
        last_error_code=given.error_code,
        last_error_message=given.error_message,
        error=given.error,
    )
    if given.succeeded:
        told = told._replace(
            workspace_ref=given.workspace_ref or step.workspace_ref,
            output_ref=given.output_ref,
            notes=given.notes,
            result=given.value,
        )
        ended = draft.move_step(told, *begun, "succeed")
        return _go_on(draft, ended, request, is_held=picture.is_held)
    if given.retryable:
        return failed(draft, told, begun, now, answered=True)
    return _fail(draft, draft.move_step(told, *begun, "fail"), "result")


def _go_on(draft: PlanDraft, ended: ProtocolStep, request: AnswerStep, *, is_held: bool) -> ProtocolPlan:
    """Dispatch the next step in the same commit, or end the job; one that is held waits there."""
    following = ended.step_index + 1
    if draft.is_cancelling:
        draft.end("settle", ended)
    elif following == len(draft.steps):
        draft.end("succeed", ended)
        draft.job = draft.job._replace(result=ended.result)
    else:
        draft.answer(ended, closes=False)
        draft.count(1, closes=False)
        if is_held:
            draft.wait_at(draft.steps[following])
        else:
            draft.dispatch(draft.steps[following], request.lease_id, relays=request.relays)
    return draft.plan(Heard.ACCEPTED, "result", step=ended.step_id)


def failed(
    draft: PlanDraft,
    step: ProtocolStep,
    begun: tuple[str, ...],
    now: Now,
    *,
    answered: bool,
) -> ProtocolPlan:
    """Let an attempt fail that may be followed by another: after a RESULT, or because its time is over.

    The budget is judged before FAILED_RETRY is entered, so that nothing waits there for a try that never
    comes. A job that was asked to end tries nothing again.
    """
    heard, kind = (Heard.ACCEPTED, "result") if answered else (Heard.DONE, "timeout")
    if draft.is_cancelling:
        moves = (*begun, "cancel") if answered else ()
        ended = draft.move_step(step, *moves)
        draft.end("settle", ended if answered else None)
        return draft.plan(heard, kind, step=step.step_id)
    tries = draft.policy.times_of(step.step_id).tries
    if step.attempt_no < tries.attempts_max:
        wait_ms = backoff_ms(tries, step.attempt_no)
        trigger = "fail_retryably" if answered else _TIMEOUTS[StepState(step.state)]
        draft.move_step(step._replace(lease_expires_at=now.wall + wait_ms), *begun, trigger)
        return draft.plan(heard, kind, step=step.step_id, code=step.last_error_code)
    return _fail(draft, draft.move_step(step, *begun, _SPENT[answered]), kind)


# By which moves a step ends that has no attempt left: its time is over, or its worker says so.
_SPENT = {False: "exhaust", True: "fail"}
_TIMEOUTS = {StepState.AWAITING_ACK: "ack_timeout", StepState.IN_PROGRESS: "lease_timeout"}


def _fail(draft: PlanDraft, ended: ProtocolStep, kind: str) -> ProtocolPlan:
    """End the job because its step has failed for good; one that was asked to end is cancelled."""
    heard = Heard.ACCEPTED if kind == "result" else Heard.DONE
    if draft.is_cancelling:
        draft.end("settle", ended)
    else:
        draft.fail(ended)
    return draft.plan(heard, kind, step=ended.step_id, code=ended.last_error_code)


def fence(picture: ProtocolPicture, request: Callback, now: Now) -> ProtocolStep | Heard:
    """Return the step that a report is accepted for, or the answer to one that is not."""
    told = request.fence
    step = picture.step(told.step_id)
    if step is None:
        return Heard.UNKNOWN
    remembered = _remembered(step, told.attempt_no, told.lease_id)
    if isinstance(request, AnswerStep) and remembered is not None:
        return Heard.DUPLICATE if remembered == request.answer.digest else Heard.CONFLICT
    if (step.attempt_no, step.lease_id) != (told.attempt_no, told.lease_id):
        return Heard.STALE
    if not step.is_in_flight:
        return Heard.DUPLICATE if remembered is not None and isinstance(request, AckStep) else Heard.STALE
    if step.is_due(now.wall):
        return Heard.EXPIRED
    return step


def _until_begun(step: ProtocolStep) -> tuple[str, ...]:
    """Return the moves that a report implies: what it overtook has happened all the same."""
    return _IMPLIED[StepState(step.state)]


_IMPLIED = {
    StepState.DISPATCHING: ("sent", "ack"),
    StepState.AWAITING_ACK: ("ack",),
    StepState.IN_PROGRESS: (),
}


def _remembered(step: ProtocolStep, attempt_no: int, lease_id: str) -> str | None:
    """Return the digest of the RESULT that was accepted for an attempt."""
    if step.answers is None:
        return None
    kept = msgspec.json.decode(step.answers, type=list[tuple[int, str, str]])
    return next((digest for *about, digest in kept if about == [attempt_no, lease_id]), None)


def _remembering(step: ProtocolStep, digest: str) -> str:
    """Return the answers of a step with one more: at most one for each attempt."""
    kept = [] if step.answers is None else msgspec.json.decode(step.answers)
    return msgspec.json.encode([*kept, (step.attempt_no, step.lease_id, digest)]).decode()
