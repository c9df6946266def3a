"""A `BaseException` of a user's function ends its try or its job, never a thread or a loop.

`sys.exit()` in a step, or a cancellation that is not meant for its workflow, would otherwise take the worker
with it, and every job that runs there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from tallystick.app.running.leaving import Again, Cancelled, Unwind

T = TypeVar("T")

# What leaves a workflow by our own wish.
OURS: Final = (Unwind, Cancelled, Again)


class Escaped(Exception):
    """Carries what a body raised through everything that expects an `Exception`."""

    def __init__(self, error: BaseException) -> None:
        """Carry it."""
        super().__init__(repr(error))
        self.error = error


def contained(function: Callable[..., T], /, *args: object, **kwargs: object) -> T:
    """Call a user's function; what it raises is an `Exception`, whatever it raises, or ours."""
    try:
        return function(*args, **kwargs)
    except (Exception, *OURS):
        raise
    except BaseException as error:
        raise Escaped(error) from error


def is_escape(error: BaseException) -> bool:
    """Tell whether this left a coroutine and is not meant for the task that it ran in."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or not task.cancelling()
    return isinstance(error, SystemExit | KeyboardInterrupt)
