"""A spawn that is cut short: its parent dies when the first of its bundles of births is durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallystick.app import children as families


def cut_spawn(put: Callable[[Any, str, Any], None], die: Callable[[], None]) -> None:
    """Let the next spawn die behind its first bundle, and no other; `put` sets an attribute of a module."""
    written = families.written

    def dies(context: Any, bundle: Any, **named: Any) -> Any:
        outcome = yield from written(context, bundle, **named)
        put(families, "written", written)
        die()
        return outcome

    put(families, "written", dies)
