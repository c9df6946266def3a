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
    protocol_view,
)
from tallystick.core.lifecycles import AttemptState, JobState
from tallystick.store.inspection import Inspection


def view_of(inspection: Inspection, job_id: str) -> JobView | None:
    """Return what users see of a job now; None if there is no such job."""
    book = inspection.book(job_id)
    if book is None:
        return None
    # Only a protocol job has steps of its own before a worker has claimed it.
    picture = inspection.protocol(job_id) if book.has_waited and not book.attempt else None
    if picture is not None:
        active = picture.active
        in_flight = active is not None and active.is_in_flight
        return protocol_view(JobState(picture.job.state), in_flight=in_flight)
    return derive(book, inspection.attempts(job_id), inspection.lease_clock())


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
