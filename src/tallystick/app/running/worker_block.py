"""A worker that runs while a block lasts: on a loop of its own by `with`, on the caller's by `async with`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class WorkerBlock:
    """What `app.worker()` returns: it works while the block lasts, and at its end gives jobs the grace."""

    def __init__(
        self, start: Callable[[asyncio.AbstractEventLoop | None], object], stop: Callable[[], object]
    ) -> None:
        """Remember how to start on a loop, or without one, and how to stop."""
        self._start = start
        self._stop = stop

    def __enter__(self) -> None:
        """Begin to work; async workflows run on a loop that the worker starts."""
        self._start(None)

    def __exit__(self, *error: object) -> None:
        """Stop, after what runs has ended or its grace is over."""
        self._stop()

    async def __aenter__(self) -> None:
        """Begin to work; async workflows run on this loop, beside the caller's tasks and with its clients."""
        try:
            await _in_thread(self._start, asyncio.get_running_loop())
        except asyncio.CancelledError:
            # Cancelled while it started: the block is never entered, so it is not left either.
            await _in_thread(self._stop)
            raise

    async def __aexit__(self, *error: object) -> None:
        """Stop without blocking the loop, on which jobs may have to end."""
        await _in_thread(self._stop)


async def _in_thread(function: Callable[..., object], /, *args: Any) -> None:  # noqa: ANN401 (as the function takes)
    """Call a function in a thread to its end, also when this task is cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await running
        raise
