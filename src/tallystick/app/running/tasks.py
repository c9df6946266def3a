"""Whether a workflow has begun tasks of its own: only then can anything happen while its function waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from tallystick.app.replay.context import WorkflowContext, current


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Count the tasks that workflows on this loop begin, unless the loop has a task factory already."""
    if loop.get_task_factory() is None:
        loop.set_task_factory(_counted)


def has_begun_none(context: WorkflowContext, loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether the function is the only task of its workflow; False where that is not known."""
    return not context.tasks_begun and loop.get_task_factory() is _counted


def is_alone(context: WorkflowContext) -> bool:
    """Tell whether nothing of a workflow can happen beside its function; False where that is not known."""
    if context.in_flight:
        return False
    return not context.is_async or has_begun_none(context, asyncio.get_running_loop())


def _counted(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    **options: Any,  # noqa: ANN401 (whatever this version of asyncio passes on)
) -> asyncio.Task[Any]:
    context = current.get()
    if type(context) is WorkflowContext:
        context.tasks_begun += 1
    return asyncio.Task(coro, loop=loop, **options)
