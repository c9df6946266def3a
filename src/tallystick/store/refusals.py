"""What refuses one bundle of a batch and no other; and a claim of which one job is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tallystick.core.verbs.holds import Hold
from tallystick.errors import ChangeRefused, StaleLease
from tallystick.store.api import Bundle, ClaimedJob, ClaimJobs, Fence, HoldJob, Outcome

STALE_REPORTS_MAX: Final = 10_000

# What binding a value raises that no column can hold: a number beyond 64 bits, half a surrogate pair.
UNSTORABLE: Final = (TypeError, ValueError, OverflowError)

Alone = Callable[[Bundle], Outcome | BaseException]
"""Writes one bundle under a savepoint of its own; what refuses it is its outcome."""

# How many jobs are tried in one transaction beyond those that were asked for; the next claim goes on.
_MORE: Final = 100


class Refused(Exception):
    """One bundle cannot be written; the error is its outcome."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def statement_of(error: BaseException) -> str:
    """Return the name of the statement that was refused, which is noted on the error."""
    return next(iter(getattr(error, "__notes__", ())), "a statement")


def stale(fence: Fence) -> StaleLease:
    """Return the outcome of a report by a worker that no longer holds the lease."""
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


def claim_apart(
    alone: Alone, due: Callable[[ClaimJobs], Sequence[str]], request: ClaimJobs, error: BaseException
) -> Outcome | BaseException:
    """Claim each due job by itself after `error` has refused them together; return those that are claimed.

    A job that is refused is not charged: nothing of its claim is written. It is held; one that cannot even be
    held is passed by.
    """
    if request.only or not isinstance(error, ChangeRefused):
        return error
    claimed: list[ClaimedJob] = []
    tried: set[str] = set()
    while len(claimed) < request.limit and len(tried) < request.limit + _MORE:
        found = due(request._replace(limit=request.limit + len(tried)))
        untried = [job_id for job_id in found if job_id not in tried][: request.limit - len(claimed)]
        if not untried:
            break
        tried.update(untried)
        for job_id in untried:
            suspects = request.suspects and not any(job.suspect for job in claimed)
            outcome = alone((request._replace(limit=1, suspects=suspects, only=job_id),))
            if isinstance(outcome, list):
                claimed += outcome
            elif isinstance(outcome, ChangeRefused):
                why = f"{outcome}; it was not claimed. See tally doctor, and resume the job when it is mended"
                alone((HoldJob(job_id, Hold.REFUSED, why),))
                request.turned_down(job_id, outcome)
            else:
                return outcome
    return claimed
