"""What a job waits for that remote workers do: each remote step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.rows import (
    PENDING,
    OutboxRow,
    ProtocolPicture,
    ProtocolStep,
    outbox_id,
    place_of_step,
)

_STEPS_SHOWN: Final = 3
# A remote worker has the step, and may finish it also while its job is held.
_OUT: Final = frozenset({StepState.AWAITING_ACK, StepState.IN_PROGRESS})


def remote_sentence(picture: ProtocolPicture, said: Callable[[int | None], str]) -> tuple[str, int | None]:
    """Return the sentence, and until when it holds; `said` makes text of an instant."""
    step = picture.active
    if step is None:
        return "all its steps have ended, and the next sweep of a worker ends it", None
    is_out = StepState(step.state) in _OUT or (step.state == StepState.DISPATCHING and not picture.pending)
    if picture.is_held and not is_out:
        return (
            f"no directive of step {_named(step)} goes out before the job is resumed",
            step.lease_expires_at,
        )
    text = _step(step, picture.pending, said)
    text += "; no further directive goes out before the job is resumed" if picture.is_held else ""
    if picture.job.state == JobState.CANCELLING:
        text = f"it was asked to end, and {text}; what that brings is the last of it"
    return text, step.lease_expires_at


def workflow_sentence(
    steps: Sequence[ProtocolStep],
    find: Callable[[str], OutboxRow | None],
    said: Callable[[int | None], str],
) -> str:
    """Return a sentence about each of the first remote steps of a workflow, and how many more there are."""
    told = []
    for step in steps[:_STEPS_SHOWN]:
        row = find(outbox_id(step.job_id, step.step_id, step.attempt_no))
        told.append(_step(step, row if row is not None and row.state == PENDING else None, said))
    more = len(steps) - _STEPS_SHOWN
    return "; ".join([*told, f"and {more} more"] if more > 0 else told)


def _named(step: ProtocolStep) -> str:
    """Return the name of a step as people call it; that in a workflow without its turn."""
    place = place_of_step(step.step_id)
    if place is None:
        return step.step_id
    _dimension, name, occurrence = place
    return name if occurrence == 1 else f"{name}#{occurrence}"


def _step(  # noqa: PLR0911 (a sentence for each state)
    step: ProtocolStep, pending: OutboxRow | None, said: Callable[[int | None], str]
) -> str:
    name = f"step {_named(step)} (attempt {step.attempt_no})"
    until = said(step.lease_expires_at)
    if step.lease_expires_at is None and step.is_open:
        # Of a workflow alone: a protocol job has an instant for every open step.
        waits = StepState(step.state) is StepState.FAILED_RETRY
        return (
            f"{name} {'is sent again when the job is resumed' if waits else 'has ended, and the job goes on'}"
        )
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
