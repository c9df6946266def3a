"""What users see of a job, derived from its rows by the rule of `core.audit.job_view`."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.core.audit.book import AttemptRow, Book
from tallystick.core.audit.job_view import (
    AbortReason,
    AttemptFacts,
    JobView,
    ViewPolicy,
    attempts_allowed,
    job_view,
)
from tallystick.core.lifecycles import AttemptState
from tallystick.store.inspection import Inspection


def view_of(inspection: Inspection, job_id: str) -> JobView | None:
    """Return what users see of a job now; None if there is no such job."""
    book = inspection.book(job_id)
    return None if book is None else derive(book, inspection.attempts(job_id), inspection.lease_clock())


def derive(book: Book, attempts: Sequence[AttemptRow], now: tuple[str, int]) -> JobView:
    """Derive the view of a job from its rows; `now` is by the clock that its leases are on.

    Where the row does not say how many attempts the job may lose, the default counts.
    """
    epoch, instant = now
    facts = [
        AttemptFacts(
            AttemptState(row.status),
            # A lease of an earlier boot protects no worker.
            row.lease_expires_at if row.lease_epoch == epoch else 0,
            row.charged,
            row.attempt == book.progress or row.reason == AbortReason.SUSPENDED,
            None if row.reason is None else AbortReason(row.reason),
        )
        for row in attempts
    ]
    allowed = attempts_allowed(book.options)
    policy = ViewPolicy() if allowed is None else ViewPolicy(allowed)
    return job_view(facts, book.open_waits, instant, policy)
