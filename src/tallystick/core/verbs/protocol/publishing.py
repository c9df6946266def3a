"""The way of a directive: made, taken by a relay, out or given up.

A try is counted before it is published, and `next_try_at` is the exclusive right to publish: the maker of the
row has its first try if it is a relay, and no other relay takes it before that instant. A directive never
outlives DISPATCHING.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.lifecycles import StepState
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import Heard, ProtocolPlan
from tallystick.core.remote.policy import TRIES_MAX, budget_ms, next_try_ms, policy_of
from tallystick.core.remote.requests import (
    DeliverDirective,
    DispatchStep,
    MarkSent,
    NotPublished,
    StepFence,
    TakeDirective,
)
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture, ProtocolStep
from tallystick.core.verbs.protocol.drafts import PlanDraft, unchanged
from tallystick.core.verbs.protocol.step_drafts import drafted

DISPATCH_FAILED: Final = "DISPATCH_FAILED"
# States in which the directive of an attempt has been out, or was answered before that was noted.
_WAS_OUT: Final = frozenset(
    {StepState.AWAITING_ACK, StepState.IN_PROGRESS, StepState.FAILED_RETRY, StepState.SUCCEEDED}
)


def dispatch(picture: ProtocolPicture, request: DispatchStep, now: Now) -> ProtocolPlan:
    """Make the next directive of the active step, if its wait for one is over and the job is not held."""
    step = picture.active
    if step is None:
        return unchanged(picture, Heard.FINAL)
    waits = step.state == StepState.FAILED_RETRY and step.is_due(now.wall)
    if picture.is_held or (not waits and step.state != StepState.PENDING):
        return unchanged(picture, Heard.NOT_DUE)
    draft = drafted(picture, now)
    draft.dispatch(step, request.lease_id, relays=request.relays)
    return draft.plan(Heard.DONE, "dispatch", step=step.step_id)


def take(picture: ProtocolPicture, request: TakeDirective, now: Now) -> ProtocolPlan:
    """Count a further try and give the right to it, or end what has no further try; not while it is held."""
    found = _on_its_way(picture, request.step_id, request.attempt_no)
    if found is None:
        return unchanged(picture, Heard.STALE)
    step, row = found
    if row.is_pulled or row.next_try_at > now.wall:
        return unchanged(picture, Heard.NOT_DUE)
    draft = drafted(picture, now)
    if draft.is_cancelling:
        draft.end("settle", None)
        return draft.plan(Heard.CANCELLED, "cancel", step=step.step_id)
    if picture.is_held:
        return unchanged(picture, Heard.NOT_DUE)
    if row.tries >= TRIES_MAX:
        return _give_up(draft, step, f"{row.tries} tries could not publish the directive")
    tries = row.tries + 1
    taken = row._replace(tries=tries, next_try_at=now.wall + next_try_ms(tries))
    draft.pending = taken
    draft.move_step(step._replace(lease_expires_at=now.wall + budget_ms(tries)))
    return draft.plan(Heard.TAKEN, None)._replace(directive=taken)


def deliver(picture: ProtocolPicture, request: DeliverDirective, now: Now) -> ProtocolPlan:
    """Give a directive to the remote worker that asks for it; it is out with that, and its ACK is awaited."""
    found = _on_its_way(picture, request.step_id, request.attempt_no)
    if found is None or not found[1].is_pulled:
        return unchanged(picture, Heard.STALE)
    step, row = found
    if step.is_due(now.wall):
        return unchanged(picture, Heard.EXPIRED)
    draft = drafted(picture, now)
    if draft.is_cancelling:
        draft.end("settle", None)
        return draft.plan(Heard.CANCELLED, "cancel", step=step.step_id)
    if picture.is_held:
        return unchanged(picture, Heard.NOT_DUE)
    draft.pending = row._replace(tries=row.tries + 1, taken_by=request.worker)
    draft.close_directive("publish")
    _await_ack(draft, step, now)
    return draft.plan(Heard.TAKEN, "sent", step=step.step_id, worker=request.worker)._replace(directive=row)


def asked_anew(picture: ProtocolPicture, now: Now) -> ProtocolStep | None:
    """Return the active step with the whole time to be asked for, if its directive waits for that.

    While its job was held no remote worker could be given it: what was left of that time counts no more.
    """
    step, row = picture.active, picture.pending
    if step is None or row is None or not row.is_pulled:
        return None
    start_ms = policy_of(picture.rules).start_within_ms
    return step._replace(lease_expires_at=now.wall + start_ms, rev=step.rev + 1)


def sent(picture: ProtocolPicture, request: MarkSent, now: Now) -> ProtocolPlan:
    """Note that a directive is out. The relay does not hold the lease, so it is not asked for."""
    step = _standing(picture, request.fence)
    if step is None:
        return unchanged(picture, Heard.STALE)
    if picture.pending is None or step.state != StepState.DISPATCHING:
        return unchanged(picture, Heard.DUPLICATE if StepState(step.state) in _WAS_OUT else Heard.STALE)
    draft = drafted(picture, now)
    draft.close_directive("publish")
    _await_ack(draft, step, now)
    return draft.plan(Heard.DONE, "sent", step=step.step_id)


def not_published(picture: ProtocolPicture, request: NotPublished, now: Now) -> ProtocolPlan:
    """Note that a try has failed: the last one ends the job, and any one ends a job that was asked to end."""
    fence = request.fence
    found = _on_its_way(picture, fence.step_id, fence.attempt_no)
    if found is None or _standing(picture, fence) is None or found[1].tries != request.try_no:
        return unchanged(picture, Heard.STALE)
    step, row = found
    draft = drafted(picture, now)
    said = f"the service {step.service} {request.told}"
    if draft.is_cancelling:
        draft.end("settle", None)
        return draft.plan(Heard.DONE, "cancel", step=step.step_id, reason=said)
    if row.tries < TRIES_MAX and not request.final:
        return unchanged(picture, Heard.LATER)
    return _give_up(draft, step, said, request.reason)


def never_taken(draft: PlanDraft, step: ProtocolStep) -> ProtocolPlan:
    """End a job whose directive no remote worker has asked for in time."""
    return _give_up(draft, step, "no remote worker asked for the directive in time")


def _give_up(draft: PlanDraft, step: ProtocolStep, why: str, reason: str | None = None) -> ProtocolPlan:
    """End a job because of a directive; `reason` is what operators read of that, if it is more."""
    draft.close_directive("give_up", reason or why)
    told = step._replace(last_error_code=DISPATCH_FAILED, last_error_message=why)
    draft.fail(draft.move_step(told, "give_up"))
    return draft.plan(Heard.DONE, "fail", step=step.step_id, code=DISPATCH_FAILED, reason=why)


def _await_ack(draft: PlanDraft, step: ProtocolStep, now: Now) -> None:
    ack_ms = draft.policy.times_of(step.step_id).ack_ms
    draft.move_step(step._replace(lease_expires_at=now.wall + ack_ms), "sent")


def _on_its_way(
    picture: ProtocolPicture, step_id: str, attempt_no: int
) -> tuple[ProtocolStep, OutboxRow] | None:
    """Return the active step and its directive, if that is not out and of this attempt."""
    step, row = picture.active, picture.pending
    if step is None or row is None or (row.step_id, row.attempt_no) != (step_id, attempt_no):
        return None
    return step, row


def _standing(picture: ProtocolPicture, fence: StepFence) -> ProtocolStep | None:
    """Return the step that a relay speaks of, if the attempt is the one that stands."""
    step = picture.step(fence.step_id)
    return None if step is None or (step.attempt_no, step.lease_id) != fence[2:] else step
