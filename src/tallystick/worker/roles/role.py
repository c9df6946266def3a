"""What a role is: a name, how often it has a turn, and the turn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar


class Role(ABC):
    """One duty of a worker.

    `every` is the time between two turns in seconds of the worker's clock; 0 means a turn in every round.
    `rest` is the longest pause before the next round that this role allows, in real seconds. A role may
    change both.
    """

    name: ClassVar[str]
    every: float = 0.0
    rest: float = math.inf

    @abstractmethod
    def run(self) -> None:
        """Take one turn. An error is logged once, and the role has its next turn after a pause."""
