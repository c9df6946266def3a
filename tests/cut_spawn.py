"""A spawn that is watched, or cut short: its parent dies when the first bundle of births is durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.app.replay import joining as families

Put = Callable[[Any, str, Any], None]
"""Sets an attribute of a module."""

_SPAWN = "_spawn"


def small_spawns(put: Put, children: int) -> None:
    """Let a bundle of births hold no more than these."""
    put(families, "SPAWN_CHILDREN_MAX", children)


def behind_each_bundle(put: Put, act: Callable[[], None]) -> None:
    """Do something whenever a bundle of births that is written by itself is durable."""
    spawn = getattr(families, _SPAWN)

    def watched(context: Any, joining: Any) -> Any:
        call = spawn(context, joining)
        try:
            need = next(call)
            while True:
                outcome = yield need
                act()
                need = call.send(outcome)
        except StopIteration as end:
            return end.value

    put(families, _SPAWN, watched)


def cut_spawn(put: Put, die: Callable[[], None]) -> None:
    """Let the next spawn die behind its first bundle, and no other."""
    spawn = getattr(families, _SPAWN)

    def dies() -> None:
        put(families, _SPAWN, spawn)
        die()

    behind_each_bundle(put, dies)
