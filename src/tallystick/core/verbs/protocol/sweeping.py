"""What happens without a remote worker: its time is over, or the job was asked to end."""

from __future__ import annotations

from typing import Final

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import Heard, ProtocolPlan
from tallystick.core.remote.requests import CancelProtocol, DispatchStep, ExpireStep
from tallystick.core.remote.rows import IN_FLIGHT, ProtocolPicture, ProtocolStep
from tallystick.core.verbs.protocol.callbacks import failed
from tallystick.core.verbs.protocol.drafts import unchanged
from tallystick.core.verbs.protocol.publishing import dispatch, never_taken
from tallystick.core.verbs.protocol.step_drafts import drafted

ACK_TIMEOUT: Final = "ACK_TIMEOUT"
LEASE_TIMEOUT: Final = "LEASE_TIMEOUT"
_LATE: Final = {
    StepState.AWAITING_ACK: (ACK_TIMEOUT, "no remote worker acknowledged the directive in time"),
    StepState.IN_PROGRESS: (
        LEASE_TIMEOUT,
        "the remote worker neither answered nor renewed its lease in time",
    ),
}


def expire(picture: ProtocolPicture, request: ExpireStep, now: Now) -> ProtocolPlan:
    """Act on the active step when its time is over."""
    step = picture.active
    if step is None:
        return unchanged(picture, Heard.FINAL)
    if not step.is_due(now.wall):
        return unchanged(picture, Heard.NOT_DUE)
    if step.state in (StepState.PENDING, StepState.FAILED_RETRY):
        return _tried_again(picture, step, request, now)
    if step.state == StepState.DISPATCHING:
        return _not_out(picture, step, now)
    code, message = _LATE[StepState(step.state)]
    late = step._replace(last_error_code=code, last_error_message=message, error=None)
    return failed(drafted(picture, now), late, (), now, answered=False)


def _tried_again(picture: ProtocolPicture, step: ProtocolStep, request: ExpireStep, now: Now) -> ProtocolPlan:
    """Make the next directive; for a workflow that is held or asked to end none goes out.

    A protocol job that is held keeps the instant: it is due as soon as it is resumed.
    """
    if picture.in_workflow and (picture.is_held or picture.job.state == JobState.CANCELLING):
        draft = drafted(picture, now)
        draft.move_step(step._replace(lease_expires_at=None))
        return draft.plan(Heard.DONE, None)
    return dispatch(picture, DispatchStep(request.job_id, request.lease_id, request.relays), now)


def _not_out(picture: ProtocolPicture, step: ProtocolStep, now: Now) -> ProtocolPlan:
    """End what waits for a remote worker to ask, or for a relay of a job that was asked to end.

    No worker can ask for what is held: its time is over only when it has run since the job was resumed.
    """
    draft = drafted(picture, now)
    if draft.is_cancelling:
        draft.end("settle", None)
        return draft.plan(Heard.DONE, "cancel", step=step.step_id)
    row = picture.pending
    if row is None or not row.is_pulled:
        return unchanged(picture, Heard.NOT_DUE)  # the relays have it: they count tries, not time
    if picture.is_held:
        return unchanged(picture, Heard.NOT_DUE)
    return never_taken(draft, step)


def cancel(picture: ProtocolPicture, request: CancelProtocol, now: Now) -> ProtocolPlan:
    """Cancel a job: at once when no remote worker can be at it, else by asking."""
    step = picture.active
    if step is None:
        return unchanged(picture, Heard.FINAL)
    draft = drafted(picture, now)
    if draft.is_cancelling and not request.force:
        return unchanged(picture, Heard.CANCELLING)
    if request.force or not _may_be_at_it(picture, now):
        draft.end("settle", None)
        return draft.plan(Heard.CANCELLED, "cancel", step=step.step_id, forced=request.force)
    draft.move_job("cancel")
    return draft.plan(Heard.CANCELLING, "cancel", step=step.step_id)


def _may_be_at_it(picture: ProtocolPicture, now: Now) -> bool:
    """Tell whether a remote worker may have the directive of the active step, or a relay is publishing it."""
    step, row = picture.active, picture.pending
    if step is None or StepState(step.state) not in IN_FLIGHT:
        return False
    return row is None or not (row.is_pulled or row.next_try_at <= now.wall)
