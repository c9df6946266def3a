"""Waiting for a condition, with a look every few milliseconds and an end; no test sleeps otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOK_SECONDS = 0.01
PATIENCE_SECONDS = 60.0


def let_time_pass(seconds: float) -> None:
    """Wait for so long, where real time is the subject: a server's timeout, a rate, a slow call."""
    threading.Event().wait(seconds)


def wait_until(condition: Callable[[], object], what: str = "that") -> None:
    """Return as soon as the condition holds; fail when it has not come to `what` for long."""
    pause = threading.Event()
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"it never came to {what}"
        pause.wait(_LOOK_SECONDS)
