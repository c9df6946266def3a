"""Waiting for a condition, with a look every few milliseconds and an end."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_SECONDS = 0.01
_LOOKS_MAX = 8_000


def wait_until(condition: Callable[[], object]) -> None:
    """Return as soon as the condition holds; fail when it has not come to that for long."""
    pause = threading.Event()
    for _ in range(_LOOKS_MAX):
        if condition():
            return
        pause.wait(_LOOK_SECONDS)
    raise AssertionError("it never came to that")
