"""What a store shows to people: its jobs, its health, and the books of its jobs in pages.

Nothing here is on the way of a job. Every read is bounded, so a check of a million jobs takes as little
memory as one of ten.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tallystick.core.values import Event


class Health(NamedTuple):
    """How the store is: facts by name, what is wrong, and what is worth knowing, in sentences."""

    facts: dict[str, object]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class Book(NamedTuple):
    """What the row of a job claims about its own history.

    `open_activities` is counted from the rows that the semaphore stands for.
    """

    job_id: str
    state: str
    attempt: int
    hold: str | None
    hold_reason: str | None
    semaphore: int
    root_ledger: int
    start_ledger: int
    ledger_form: int
    head_n: int
    head_hash: bytes
    rev: int
    options: str
    open_activities: int


class AttemptRow(NamedTuple):
    """One attempt of a job."""

    attempt: int
    status: str
    lease_id: str
    lease_owner: str
    lease_epoch: str
    lease_expires_at: int
    reason: str | None
    charged: bool
    started_at: int | None
    finished_at: int | None


class StaleReports(NamedTuple):
    """How many reports came too late since the beginning, and when the last one did."""

    total: int
    last_at: int | None


class WorkerLeases(NamedTuple):
    """The live attempts of one worker: how many of its leases hold, and how many ran out.

    `overdue_ms` says for how long the oldest has, None if that was before this machine was started; `job_id`
    is one of those whose lease ran out.
    """

    owner: str
    held: int
    lost: int
    overdue_ms: int | None
    job_id: str | None


class Inspection(Protocol):
    """The reads of a check."""

    def health(self) -> Health:
        """Examine the store itself."""
        ...

    def book(self, job_id: str) -> Book | None:
        """Return the book of one job."""
        ...

    def books(self, *, after: str | None, limit: int) -> list[Book]:
        """Return a page of books, newest job first; `after` is the last job_id of the page before."""
        ...

    def facts(self, job_id: str, *, after: int, limit: int) -> list[Event]:
        """Return the facts of a job that follow number `after`, in order, inline steps included."""
        ...

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """Return the attempts at a job itself, oldest first."""
        ...

    def held(self, limit: int) -> list[Book]:
        """Return jobs that wait for a person, newest first."""
        ...

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return the leases of live attempts by worker, those that lost most first."""
        ...

    def stale_reports(self) -> StaleReports:
        """Count the reports that were refused because they came too late."""
        ...
