"""A store under test: how to open it, and two windows that its protocol does not have."""

from __future__ import annotations

from typing import Any, Protocol

from tallystick.clock import Clock, VirtualClock
from tallystick.store.api import Store, Transaction


class Subject(Protocol):
    """An empty store and what a test may do around it."""

    url: str
    """The address, which other processes can open with `open_store`."""

    clock: VirtualClock
    """The clock of `store`; the test owns it."""

    store: Store
    """The store, opened on that clock."""

    crash_points: tuple[str, ...]
    """The declared points around the end of a job, for tests that kill a process there."""

    def open(self, clock: Clock) -> Store:
        """Open the same data once more; whoever opens closes."""
        ...

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table of the model, as durable now."""
        ...

    def plant(self, table: str, **columns: object) -> None:
        """Insert a row by hand, for what no primitive writes yet."""
        ...

    def put_effect(self, transaction: Transaction, value: str) -> None:
        """Write a user's row through a transaction on loan, into a table without a unique key."""
        ...

    def effects(self) -> list[str]:
        """Return the user's rows, in the order of their values."""
        ...

    def spin(self, transaction: Transaction) -> None:
        """Run one statement that writes and would take minutes."""
        ...
