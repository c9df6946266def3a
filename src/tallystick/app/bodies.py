"""How the body of a step is run: in this thread, in one of its own, within its time."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tallystick.app.calls import Body, StepSpec
from tallystick.app.context import INSIDE_STEP, WorkflowContext, current
from tallystick.app.daemon_threads import run_in_daemon_thread
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

    def answer() -> tuple[bool, Any]:
        try:
            return True, inside.run(function, *args)
        except BaseException as error:  # noqa: BLE001 (raised again where it is awaited; also StopIteration)
            return False, error
        finally:
            context.in_threads.discard(mark)

    succeeded, value = await asyncio.wrap_future(run_in_daemon_thread(answer))
    if succeeded:
        return value  # type: ignore[no-any-return]  # the value of the function
    raise value


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
    answer: list[tuple[bool, Any]] = []
    inside = contextvars.copy_context()
    inside.run(current.set, INSIDE_STEP)

    def run() -> None:
        try:
            answer.append((True, inside.run(contained, spec.function, *args, **kwargs)))
        except Exception as error:  # noqa: BLE001 (raised again in the waiting thread)
            answer.append((False, error))

    thread = threading.Thread(target=run, name=f"tally-step-{spec.name}", daemon=True)
    thread.start()
    thread.join((spec.timeout_ms or 0) / 1000)
    if not answer:
        raise _took_too_long(spec)
    succeeded, value = answer[0]
    if not succeeded:
        raise value
    return value


def _took_too_long(spec: StepSpec) -> StepTimeout:
    return StepTimeout(f"{spec.name} took longer than {spec.timeout_ms} ms", step=spec.name)
