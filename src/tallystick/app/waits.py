"""Waiting inside a workflow: for a signal, for a while, without a thread and without a lease."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from tallystick.app.calls import Call, StepSpec, Write, drive, drive_async
from tallystick.app.context import Again, WorkflowContext, current
from tallystick.app.retrying import ONCE, Duration
from tallystick.app.values import Codec
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.errors import OutsideWorkflow, WrongColour
from tallystick.store.api import Wait

T = TypeVar("T")


def wait_sync(name: str, kind: Any, timeout: Duration | None) -> Any:  # noqa: ANN401 (as `kind` says)
    """Wait for a signal in a sync workflow."""
    context = workflow_context("wait", is_async=False)
    return drive(context, NO_BODY, _call(context, "wait", check_name("signal", name), Codec(kind), timeout))


async def wait_async(name: str, kind: Any, timeout: Duration | None) -> Any:  # noqa: ANN401, ASYNC109 (a durable wait)
    """Wait for a signal in an async workflow."""
    context = workflow_context("wait", is_async=True)
    call = _call(context, "wait", check_name("signal", name), Codec(kind), timeout)
    return await drive_async(context, NO_BODY, call)


def sleep_sync(duration: Duration) -> None:
    """Sleep in a sync workflow."""
    context = workflow_context("sleep", is_async=False)
    drive(context, NO_BODY, _call(context, "sleep", "sleep", Codec(Any), duration))


async def sleep_async(duration: Duration) -> None:
    """Sleep in an async workflow."""
    context = workflow_context("sleep", is_async=True)
    await drive_async(context, NO_BODY, _call(context, "sleep", "sleep", Codec(Any), duration))


def _call(context: WorkflowContext, kind: Any, name: str, codec: Codec, limit: Duration | None) -> Call:  # noqa: ANN401 (a literal kind)
    """Return the recorded answer, or take it from the inbox, or unwind until it comes."""
    context.check()
    segment = context.segment
    occurrence = segment.number(name)
    record = segment.recall(name, occurrence)
    if record is None:
        context.check_cancelled()
        if segment.unused and not context.is_async:
            raise context.mismatch(name, occurrence)
        due_at = None if limit is None else context.runtime.clock.wall_ms() + duration_ms(limit)
        answer = yield Write(segment.awaiting(Wait(kind, name, occurrence, due_at)))
        if answer is None:
            raise context.unwind(f"suspended until {name}#{occurrence} is answered", None)
        result, timed_out = answer.payload, answer.timed_out
    elif record.kind != kind:
        raise context.mismatch(name, occurrence)
    else:
        result, timed_out = record.result, record.result == "null"
    context.calls.append((name, occurrence))
    return None if timed_out or result is None else codec.decode(result, f"the signal {name}")


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
