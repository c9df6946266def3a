"""`tick()`: how a long-running function says that it is still working."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

_current: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("tallystick_stage_tick", default=None)


def tick() -> bool:
    """Renew the lease of the item that is being computed; False means that it is lost.

    Outside a stage there is no lease to lose, and the answer is True: the function still is a plain function.
    """
    renew = _current.get()
    return True if renew is None else renew()


def beats_with(renew: Callable[[], bool]) -> None:
    """Let `tick()` in this thread, task or process renew by this function."""
    _current.set(renew)
