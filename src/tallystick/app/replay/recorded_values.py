"""Time and chance inside a workflow: drawn once, kept, and the same on every replay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from tallystick.app.replay.context import WorkflowContext, current
from tallystick.clock import SystemClock
from tallystick.errors import Misuse
from tallystick.ids import UUID, SystemIds

T = TypeVar("T")

_clock = SystemClock()
_ids = SystemIds()


def now() -> datetime:
    """Return the time, in UTC; in a workflow the same on every replay."""
    ms = _drawn("now", _current_ms, int)
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


def uuid() -> UUID:
    """Return a new UUID; in a workflow the same on every replay."""
    return UUID(_drawn("uuid", _ids.new, str))


def random() -> float:
    """Return a number in [0, 1); in a workflow the same on every replay."""
    return _drawn("random", _ids.random, float)


def _current_ms() -> int:
    context = current.get()
    return (context.runtime.clock if isinstance(context, WorkflowContext) else _clock).wall_ms()


def _drawn(name: str, draw: Callable[[], T], kind: type[T]) -> T:
    context = current.get()
    if not isinstance(context, WorkflowContext):
        return draw()
    context.check()
    if context.elsewhere:
        raise Misuse(
            f"{name}() in a thread of its own may get another one's value on replay: draw it in the "
            "workflow's own thread and pass it on"
        )
    known, found = context.segment.note(name)
    if known:
        return kind(found)  # type: ignore[call-arg]  # int, str and float take what they once were
    value = draw()
    context.segment.keep(str(found), value)
    return value
