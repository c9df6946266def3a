"""Named places at which a test may kill this process, exactly as `kill -9` would.

A point costs one comparison unless `TALLYSTICK_CRASH_AT` names it: `log.append.written` kills at the first
visit, `log.append.written:3` at the third. Every point is declared beside the code that visits it, so that a
sweep can walk the registry and a point that was never killed shows up as a gap.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "TALLYSTICK_CRASH_AT"

_registry: dict[str, str] = {}
_armed = ""
_visits_left = 0


class Crash(BaseException):
    """Raised by a test where a process is imagined to die: nothing contains it, and nothing records it."""


def declare(name: str, moment: str) -> str:
    """Register a point with a sentence about its moment, and return its name."""
    if ":" in name or _registry.get(name, moment) != moment:
        raise ValueError(f"the crash point {name!r} is malformed or already declared")
    _registry[name] = moment
    return name


def points() -> dict[str, str]:
    """Return every declared point with its moment, in the order of the names."""
    return dict(sorted(_registry.items()))


def arm(spec: str) -> None:
    """Kill this process at `name` or at the k-th visit of `name:k`; an empty text disarms."""
    global _armed, _visits_left  # noqa: PLW0603 (one process dies once; a point must cost next to nothing)
    name, _, visit = spec.partition(":")
    _visits_left = int(visit) if visit else 1
    _armed = name


def point(name: str) -> None:
    """Die here if this is the armed point and its visit has come; otherwise do nothing."""
    global _visits_left  # noqa: PLW0603 (as in arm)
    if _armed != name:
        return
    _visits_left -= 1
    if _visits_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE, ""))
