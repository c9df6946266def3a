"""Async twins: makes the `_aio` method that belongs to a method that blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def twin_of(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return the async twin of a method: it runs in a thread, and takes and returns the same.

    >>> class Shop:
    ...     def sold(self, item: str) -> str:
    ...         '''Return what was sold.'''
    ...         return item
    ...
    ...     sold_aio = twin_of(sold)
    >>> asyncio.run(Shop().sold_aio("tea")), Shop.sold_aio.__doc__
    ('tea', 'Return what was sold. It does not block the event loop; as `sold` in all else.')
    """

    @wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    first = (method.__doc__ or "").partition("\n")[0]
    twin.__name__ = f"{method.__name__}_aio"
    twin.__qualname__ = f"{method.__qualname__}_aio"
    twin.__doc__ = f"{first} It does not block the event loop; as `{method.__name__}` in all else."
    return twin
