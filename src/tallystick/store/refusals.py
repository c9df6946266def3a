"""What refuses one bundle of a batch, and nobody else's."""

from __future__ import annotations

from typing import Final

from tallystick.errors import StaleLease
from tallystick.store.api import Fence

STALE_REPORTS_MAX: Final = 10_000

# What binding a value raises that no column can hold: a number beyond 64 bits, half a surrogate pair.
UNSTORABLE: Final = (TypeError, ValueError, OverflowError)


class Refused(Exception):
    """One bundle cannot be written; the error is its outcome."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def statement_of(error: BaseException) -> str:
    """Return the name of the statement that was refused: whoever ran it has noted it on the error."""
    return next(iter(getattr(error, "__notes__", ())), "a statement")


def stale(fence: Fence) -> StaleLease:
    """Return the outcome of a report by somebody who no longer holds the lease."""
    return StaleLease(
        f"attempt {fence.attempt} of job {fence.job_id} no longer holds its lease; nothing was written",
        job_id=fence.job_id,
        attempt=fence.attempt,
        lease_id=fence.lease_id,
    )


def share_fate(first: object, second: object) -> None:
    """Refuse a bundle of two parts of which one was accepted and the other not: both are to be undone."""
    refusals = [part for part in (first, second) if isinstance(part, BaseException)]
    if len(refusals) == 1:
        raise Refused(refusals[0])
