"""What an async workflow may ask for: the names of `tallystick`, awaited where they may suspend."""

from collections.abc import Awaitable
from typing import TypeVar, overload

from tallystick import Duration
from tallystick import again as again
from tallystick import now as now
from tallystick import patched as patched
from tallystick import random as random
from tallystick import uuid as uuid

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

@overload
async def wait(name: str, type: type[A]) -> A: ...
@overload
async def wait(name: str, type: type[A], *, timeout: Duration) -> A | None: ...
async def sleep(duration: Duration) -> None: ...
@overload
async def gather(a: Awaitable[A], /, *, fail_fast: bool = ...) -> tuple[A]: ...
@overload
async def gather(a: Awaitable[A], b: Awaitable[B], /, *, fail_fast: bool = ...) -> tuple[A, B]: ...
@overload
async def gather(
    a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /, *, fail_fast: bool = ...
) -> tuple[A, B, C]: ...
@overload
async def gather(
    a: Awaitable[A],
    b: Awaitable[A],
    c: Awaitable[A],
    d: Awaitable[A],
    /,
    *more: Awaitable[A],
    enough: int = ...,
    fail_fast: bool = ...,
) -> tuple[A, ...]: ...
