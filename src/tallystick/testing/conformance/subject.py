"""A store under test: how to open it, and what its protocol does not show: every durable value."""

from __future__ import annotations

from typing import Protocol

from tallystick.clock import Clock, VirtualClock
from tallystick.store.api import Store, Transaction
from tallystick.testing.conformance.pictures import (
    AttemptPicture,
    Books,
    DirectivePicture,
    FactPicture,
    JobPicture,
    MessagePicture,
    Picture,
    ReservationPicture,
    StaleReportPicture,
    StepPicture,
)


class Subject(Protocol):
    """An empty store and what a test may do around it; pictures come in the order of their first fields."""

    url: str
    """The address, which other processes can open with `open_store`."""

    clock: VirtualClock
    """The clock of `store`; the test owns it."""

    store: Store
    """The store, opened on that clock."""

    crash_points: tuple[str, ...]
    """The declared points around the end of a job, for tests that kill a process there."""

    def open(self, clock: Clock) -> Store:
        """Open the same data once more; the caller closes it."""
        ...

    def job(self, job_id: str) -> JobPicture:
        """Return a job that is there."""
        ...

    def jobs(self) -> list[JobPicture]:
        """Return all jobs."""
        ...

    def attempts(self) -> list[AttemptPicture]:
        """Return all attempts."""
        ...

    def steps(self) -> list[StepPicture]:
        """Return all steps and activities."""
        ...

    def messages(self) -> list[MessagePicture]:
        """Return all messages."""
        ...

    def facts(self) -> list[FactPicture]:
        """Return all facts but the records of steps."""
        ...

    def reservations(self) -> list[ReservationPicture]:
        """Return all keys and contents that are taken."""
        ...

    def directives(self) -> list[DirectivePicture]:
        """Return all directives."""
        ...

    def stale_reports(self) -> list[StaleReportPicture]:
        """Return all reports that came too late."""
        ...

    def books(self, job_id: str | None = None) -> Books:
        """Return every durable value of all jobs, or of one; without the reports that came too late."""
        ...

    def plant(self, *pictures: Picture) -> None:
        """Write by hand what no primitive writes."""
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
