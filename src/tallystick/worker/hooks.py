"""What a program does around its worker: before the first claim, and after the last segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple


class Around(NamedTuple):
    """Functions in the order of their declaration; coroutine functions run on the loop of the worker."""

    start: tuple[Callable[[], Any], ...] = ()
    stop: tuple[Callable[[], Any], ...] = ()


AROUND_NOTHING: Final = Around()
