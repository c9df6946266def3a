"""How the body of a step is run: in this thread, in one of its own, within its time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from tallystick.app.replay.calls import Body, StepSpec
from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.app.running.daemon_threads import ThreadAnswer, run_in_daemon_thread
from tallystick.app.running.user_exceptions import contained
from tallystick.errors import StepTimeout

T = TypeVar("T")


def run_body(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in this thread, or in one of its own if its time is limited."""
    if spec.timeout_ms is not None:
        return _run_in_time(context, spec, body)
    token = current.set(Inside(context, spec.name, body.occurrence))
    try:
        return contained(spec.function, *body.args, **body.kwargs)
    finally:
        current.reset(token)


async def in_thread(context: WorkflowContext, function: Callable[..., T], /, *args: object) -> T:
    """Run a function in a thread; until it returns the workflow knows of it, whether it waits or not."""
    inside = contextvars.copy_context()
    mark = object()
    context.in_threads.add(mark)

    def run() -> T:
        try:
            return inside.run(function, *args)
        finally:
            context.in_threads.discard(mark)

    answer: ThreadAnswer[T] = await asyncio.wrap_future(run_in_daemon_thread(run))
    return answer.value()


async def run_guarded(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function that must not block the loop, or must not take longer than it may."""
    if not spec.is_async:
        return await in_thread(context, run_body, context, spec, body)
    limit = asyncio.timeout((spec.timeout_ms or 0) / 1000)
    value = None
    try:
        # An effect that is stopped would be in doubt: it has its time, and no more.
        with nullcontext() if spec.kind == "effect" else context.stoppable():
            async with limit:
                token = current.set(Inside(context, spec.name, body.occurrence))
                try:
                    value = await spec.function(*body.args, **body.kwargs)
                finally:
                    current.reset(token)
    except Exception as error:
        if not limit.expired():
            raise  # one of its own
        raise _took_too_long(spec) from error
    if limit.expired():
        raise _took_too_long(spec)  # it has swallowed that its time was up
    return value


def _run_in_time(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in a thread of its own and stop waiting when its time is up.

    Python cannot end a thread: the function may go on, and what it returns then is dropped.
    """
    inside = contextvars.copy_context()
    inside.run(current.set, Inside(context, spec.name, body.occurrence))
    running = run_in_daemon_thread(partial(inside.run, contained, spec.function, *body.args, **body.kwargs))
    try:
        answer = running.result((spec.timeout_ms or 0) / 1000)
    except TimeoutError:
        raise _took_too_long(spec) from None
    return answer.value()


def _took_too_long(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)
