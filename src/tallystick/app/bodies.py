"""How the body of a step is run: in this thread, in one of its own, within its time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from tallystick.app.calls import Body, StepSpec
from tallystick.app.context import INSIDE_STEP, WorkflowContext, current
from tallystick.app.daemon_threads import Answer, run_in_daemon_thread
from tallystick.app.escapes import contained
from tallystick.errors import StepTimeout

T = TypeVar("T")


def run_body(spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in this thread, or in one of its own if its time is limited."""
    if spec.timeout_ms is not None:
        return _run_in_time(spec, args, kwargs)
    token = current.set(INSIDE_STEP)
    try:
        return contained(spec.function, *args, **kwargs)
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

    answer: Answer[T] = await asyncio.wrap_future(run_in_daemon_thread(run))
    return answer.value()


async def run_guarded(context: WorkflowContext, spec: StepSpec, body: Body) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function that must not block the loop, or must not take longer than it may."""
    if not spec.is_async:
        return await in_thread(context, run_body, spec, body.args, body.kwargs)
    limit = asyncio.timeout((spec.timeout_ms or 0) / 1000)
    try:
        async with limit:
            token = current.set(INSIDE_STEP)
            try:
                return await spec.function(*body.args, **body.kwargs)
            finally:
                current.reset(token)
    except TimeoutError as error:
        if not limit.expired():
            raise  # one of its own
        raise _took_too_long(spec) from error


def _run_in_time(spec: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated)
    """Run a function in a thread of its own and stop waiting when its time is up.

    Python cannot end a thread: the function may go on, and what it returns then is dropped.
    """
    inside = contextvars.copy_context()
    inside.run(current.set, INSIDE_STEP)
    running = run_in_daemon_thread(partial(inside.run, contained, spec.function, *args, **kwargs))
    try:
        answer = running.result((spec.timeout_ms or 0) / 1000)
    except TimeoutError:
        raise _took_too_long(spec) from None
    return answer.value()


def _took_too_long(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)
