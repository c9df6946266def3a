"""What an async workflow may ask for: the names of `tallystick`, to be awaited."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, overload

from tallystick.app.api.retrying import When
from tallystick.app.replay.async_drivers import ask_async, in_turn
from tallystick.app.replay.children import Child, check_children
from tallystick.app.replay.children import start_async as start
from tallystick.app.replay.joining import Wanted, join_async
from tallystick.app.replay.patches import patched
from tallystick.app.replay.recorded_values import now, random, uuid
from tallystick.app.replay.waits import (
    PUT_ASIDE,
    again,
    as_wait,
    recall,
    value_of,
    workflow_context,
)
from tallystick.app.values.codec import Codec
from tallystick.core.limits import check_name
from tallystick.store.api import Record

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

__all__ = ["again", "gather", "now", "patched", "random", "sleep", "start", "uuid", "wait"]


@overload
async def wait(name: str, type: type[T]) -> T: ...
@overload
async def wait(name: str, type: type[T], *, timeout: When) -> T | None: ...  # noqa: ASYNC109 (a durable wait)
async def wait(
    name: str,
    type: Any,  # noqa: A002 (it is one)
    *,
    timeout: When | None = None,  # noqa: ASYNC109 (a durable wait)
) -> Any:
    """Wait for a signal of this name and return its value, or None when the time is up."""
    context = workflow_context("wait", is_async=True)
    codec = Codec(type, f"the signal {name}")
    check_name("signal", name)
    while True:
        recalled = recall(context, "wait", name)
        if isinstance(recalled, Record):
            result = (await in_turn(context, recalled)).result
        else:
            result = await ask_async(context, as_wait(recalled, timeout))
        value = value_of(recalled, result, codec, timed=timeout is not None)
        if value is not PUT_ASIDE:
            return value


async def sleep(duration: When) -> None:
    """Sleep for a while, or until an instant, through restarts, without a task and without a lease."""
    context = workflow_context("sleep", is_async=True)
    recalled = recall(context, "sleep", "sleep")
    if isinstance(recalled, Record):
        await in_turn(context, recalled)
    else:
        await ask_async(context, as_wait(recalled, duration))


@overload
async def gather(
    a: Child[A], /, *, fail_fast: bool = ..., return_exceptions: Literal[False] = ...
) -> tuple[A]: ...
@overload
async def gather(
    a: Child[A], b: Child[B], /, *, fail_fast: bool = ..., return_exceptions: Literal[False] = ...
) -> tuple[A, B]: ...
@overload
async def gather(
    a: Child[A],
    b: Child[B],
    c: Child[C],
    /,
    *,
    fail_fast: bool = ...,
    return_exceptions: Literal[False] = ...,
) -> tuple[A, B, C]: ...
@overload
async def gather(
    *children: Child[A],
    enough: int | None = ...,
    fail_fast: bool = ...,
    return_exceptions: Literal[False] = ...,
) -> tuple[A, ...]: ...
@overload
async def gather(a: Child[A], /, *, return_exceptions: Literal[True]) -> tuple[A | Exception]: ...
@overload
async def gather(
    a: Child[A], b: Child[B], /, *, return_exceptions: Literal[True]
) -> tuple[A | Exception, B | Exception]: ...
@overload
async def gather(
    a: Child[A], b: Child[B], c: Child[C], /, *, return_exceptions: Literal[True]
) -> tuple[A | Exception, B | Exception, C | Exception]: ...
@overload
async def gather(
    *children: Child[A], enough: int | None = ..., return_exceptions: Literal[True]
) -> tuple[A | Exception, ...]: ...
async def gather(
    *children: Child[Any],
    enough: int | None = None,
    fail_fast: bool = False,
    return_exceptions: bool = False,
) -> tuple[Any, ...]:
    """Start children together and wait for them: all, or `enough` of them, or until the first fails.

    Results come in the order of the children. When all have ended and some failed, `ChildrenFailed` carries
    every error and the results that are there; with `return_exceptions` the error of a child that failed
    takes the place of its result instead.
    """
    context = workflow_context("gather", is_async=True)
    check_children("gather", children)
    return await join_async(context, children, Wanted(enough, fail_fast, return_exceptions))
