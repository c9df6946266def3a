"""How a group of children is to be opened, and what closes it."""

from __future__ import annotations

from typing import NamedTuple


class GroupShape(NamedTuple):
    """How many children a group has, when it closes, and whether the first failure is enough."""

    total: int
    threshold: int
    fail_fast: bool

    @property
    def takes_all(self) -> bool:
        """Tell whether only the end of the last child closes it."""
        return not self.threshold and not self.fail_fast
