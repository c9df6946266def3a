"""What a protocol job waits for: the state of the remote step that is worked on, in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture, ProtocolStep


def remote_sentence(picture: ProtocolPicture, said: Callable[[int | None], str]) -> tuple[str, int | None]:
    """Return the sentence, and until when it holds; `said` makes text of an instant."""
    step = picture.active
    if step is None:
        return "all its steps have ended, and the next sweep of a worker ends it", None
    text = _step(step, picture.pending, said)
    if picture.job.state == JobState.CANCELLING:
        text = f"it was asked to end, and {text}; what that brings is the last of it"
    return text, step.lease_expires_at


def _step(  # noqa: PLR0911 (a sentence for each state)
    step: ProtocolStep, pending: OutboxRow | None, said: Callable[[int | None], str]
) -> str:
    name = f"step {step.step_id} (attempt {step.attempt_no})"
    until = said(step.lease_expires_at)
    match StepState(step.state):
        case StepState.PENDING:
            return f"step {step.step_id} is next, and a worker of this program dispatches it"
        case StepState.DISPATCHING if pending is not None and pending.is_pulled:
            return f"{name} waits until {until} for a remote worker of {step.service} to ask for it"
        case StepState.DISPATCHING if pending is not None:
            at = said(pending.next_try_at)
            return f"the directive of {name} is published at {at}, by try {pending.tries + 1}"
        case StepState.DISPATCHING:
            return f"the directive of {name} was sent to {step.service}"
        case StepState.AWAITING_ACK:
            return f"{step.service} was given {name} and has until {until} to acknowledge it"
        case StepState.IN_PROGRESS:
            return f"{step.service} works on {name}, and is to answer or to send a heartbeat until {until}"
        case StepState.FAILED_RETRY:
            failed = f"{step.last_error_code}: {step.last_error_message}"
            return f"{name} failed ({failed}) and is sent again at {until}"
        case StepState.SUCCEEDED | StepState.FAILED_FINAL | StepState.CANCELLED:
            return f"step {step.step_id} has ended"
