"""Waiting inside a workflow: for a signal, for a while, without a thread and without a lease."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar, overload

from tallystick.app.calls import Call, StepSpec, Write
from tallystick.app.context import Again, WorkflowContext, current
from tallystick.app.driving import drive
from tallystick.app.retrying import ONCE, Duration
from tallystick.app.values import Codec
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.errors import OutsideWorkflow, WrongColour
from tallystick.store.api import Wait

T = TypeVar("T")


@overload
def wait(name: str, type: type[T]) -> T: ...
@overload
def wait(name: str, type: type[T], *, timeout: Duration) -> T | None: ...
def wait(name: str, type: Any, *, timeout: Duration | None = None) -> Any:  # noqa: A002 (it is one)
    """Wait for a signal of this name and return its value, or None when the time is up.

    The job holds no thread and no lease meanwhile. A signal that was sent before is taken at once.
    """
    context = workflow_context("wait", is_async=False)
    call = answer(context, "wait", check_name("signal", name), Codec(type), timeout)
    return drive(context, NO_BODY, call)


def sleep(duration: Duration) -> None:
    """Sleep, through restarts, without a thread and without a lease."""
    context = workflow_context("sleep", is_async=False)
    drive(context, NO_BODY, answer(context, "sleep", "sleep", Codec(Any), duration))


def answer(context: WorkflowContext, kind: Any, name: str, codec: Codec, limit: Duration | None) -> Call:  # noqa: ANN401 (a literal kind)
    """Return the recorded answer, or take it from the inbox, or unwind until it comes."""
    context.check()
    segment = context.segment
    occurrence = segment.number(name)
    record = segment.recall(name, occurrence)
    if record is None:
        context.check_cancelled()
        if segment.behind and not context.is_async:
            raise context.mismatch(name, occurrence)
        due_at = None if limit is None else context.runtime.clock.wall_ms() + duration_ms(limit)
        answer = yield Write(segment.awaiting(Wait(kind, name, occurrence, due_at)))
        context.heed(answer)
        if answer is None:
            raise context.unwind(f"suspended until {name}#{occurrence} is answered", None)
        result = answer.payload
    elif record.kind != kind:
        raise context.mismatch(name, occurrence)
    else:
        result = record.result
    context.calls.append((name, occurrence))
    # The record of a timeout is null, so a null that was sent means the same here, on replay as now.
    if limit is not None and result in (None, "null"):
        return None
    return codec.decode(result or "null", f"the signal {name}")


def again(*args: object, **kwargs: object) -> NoReturn:
    """Begin the same job once more, with these arguments and an empty history.

    The way to loop for ever: the job keeps its identifier and its key, and replays only its current turn.
    """
    context = current.get()
    if not isinstance(context, WorkflowContext):
        raise OutsideWorkflow("again is only for the body of a workflow")
    context.check()
    raise Again(args, kwargs)


def workflow_context(verb: str, *, is_async: bool) -> WorkflowContext:
    """Return the workflow that makes this call, or say where the call belongs."""
    context = current.get()
    if not isinstance(context, WorkflowContext):
        raise OutsideWorkflow(
            f"{verb} is only durable in the body of a workflow; elsewhere use the standard library"
        )
    if context.is_async is not is_async:
        home = "tallystick.aio" if context.is_async else "tallystick"
        raise WrongColour(f"this workflow is {'async' if context.is_async else 'sync'}: use {verb} of {home}")
    return context


# A wait runs no function of the user's.
NO_BODY = StepSpec(
    name="wait",
    kind="wait",
    function=lambda: None,
    is_async=False,
    policy=ONCE.policy,
    timeout_ms=None,
    raises=(),
    codec=lambda: Codec(Any),
)
