"""Windows: how far ahead of the commit cursor a stage may work.

Where a window ends depends only on the items before it (their number, cost and bytes), never on time or
on which worker was fast. So the same input gives the same windows, in a first run and in a resumed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallystick.errors import BadInput
from tallystick.stage.outcome import Result
from tallystick.stage.sequence.policy import SlotPolicy
from tallystick.stage.sequence.sequence import Sequence


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """When a window is full, and how many may be open at once.

    An item that is larger than a limit all by itself gets a window of its own.
    """

    count: int = 4096
    cost: float = math.inf
    bytes: float = math.inf
    active: int = 2

    def __post_init__(self) -> None:
        for name in ("count", "cost", "bytes", "active"):
            if not getattr(self, name) > 0:
                raise BadInput(f"a window needs a {name} above 0", limit=name)


class WindowPlan:
    """Decides, item after item, whether the next one still belongs to the current window."""

    def __init__(
        self,
        limits: WindowLimits,
        cost_of: Callable[[Any], float] | None,
        size_of: Callable[[Any], int] | None,
    ) -> None:
        self.limits = limits
        self._cost_of = cost_of
        self._size_of = size_of
        self.number = 0
        self._count = 0
        self._cost = 0.0
        self._bytes = 0

    def place(self, item: object) -> int:
        """Return the number of the window that the next item belongs to, and remember that it is there."""
        cost = self._cost_of(item) if self._cost_of else 0.0
        size = self._size_of(item) if self._size_of else 0
        limits = self.limits
        if self._count and (
            self._count >= limits.count
            or self._cost + cost > limits.cost
            or self._bytes + size > limits.bytes
        ):
            self.number += 1
            self._count, self._cost, self._bytes = 0, 0.0, 0
        self._count += 1
        self._cost += cost
        self._bytes += size
        return self.number


class Window:
    """The items of one window, their slots, and the results that wait for their turn."""

    __slots__ = ("first", "items", "keys", "number", "results", "sealed", "sequence")

    def __init__(self, number: int, first: int, policy: SlotPolicy) -> None:
        self.number = number
        self.first = first
        self.sequence = Sequence(range(first, first), policy=policy)
        self.items: list[Any] = []
        self.keys: list[str] = []
        self.results: list[Result | None] = []
        self.sealed = False

    def append(self, item: object, key: str, now_ms: int) -> int:
        """Expect and dispatch one more item; return its seq."""
        seq = self.first + len(self.items)
        self.items.append(item)
        self.keys.append(key)
        self.results.append(None)
        self.sequence.extend()
        self.sequence.dispatch(seq, now_ms)
        return seq

    @property
    def end(self) -> int:
        """Return the seq after the last one."""
        return self.first + len(self.items)

    @property
    def is_spent(self) -> bool:
        """Tell whether nothing will be added and everything is committed."""
        return self.sealed and self.sequence.committed_count == len(self.items)
