"""Reclaiming, ending and cancelling for whoever was lost: what a worker does for jobs that are not its own.

A sweep finds; the rules decide under the lock of each job, so any number of sweepers may work at once and one
that comes too late changes nothing. What is refused over one job keeps no other from its turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from tallystick.core.decisions import Reclaim
from tallystick.core.lease import CANCEL_GRACE_MS
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.engine.committer import Committer
from tallystick.errors import StaleLease, StoreError
from tallystick.store.api import Bundle, CancelJob, Fence, ReclaimAttempt, Store

_log = logging.getLogger("tallystick.engine")

Tell = Callable[[BaseException], bool]
"""Whether a refusal is worth a line in the log: it was not told before."""


def sweep(
    store: Store, committer: Committer, excused: Collection[Fence] = (), tell: Tell = lambda _error: True
) -> int:
    """Reclaim what has expired and return of how many attempts something became.

    Those of the `excused` are not charged: their worker lives, and the store did not let it write. A job for
    which the database refuses this is held, with the refusal as the reason.
    """
    requests = [
        ReclaimAttempt(lost.fence, lost.unit, excused=lost.fence in excused)
        for lost in store.expired(SWEEP_ROWS_MAX)
    ]
    taken, refused = _reclaimed(committer, requests)
    held = [
        request._replace(refused=f"the end of its lost attempt was refused: {error}; see tally doctor")
        for request, error in refused
    ]
    kept, stuck = _reclaimed(committer, held)
    for request, error in (*refused, *stuck):
        if tell(error):
            _log.error(
                "job %s: its lost attempt could not be reclaimed, %s",
                request.fence.job_id,
                error,
                extra={"action": "sweep.refused", "job_id": request.fence.job_id},
            )
    return taken + kept


def _reclaimed(
    committer: Committer, requests: Sequence[ReclaimAttempt]
) -> tuple[int, list[tuple[ReclaimAttempt, BaseException]]]:
    """Write requests and return how many did something, and which were refused, by what."""
    taken, refused = 0, []
    for request, outcome in zip(requests, committer.call_all([(each,) for each in requests]), strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if isinstance(outcome, BaseException):
            refused.append((request, outcome))
        elif outcome is not Reclaim.LEAVE:
            taken += 1
    return taken, refused


def end_overdue(store: Store, committer: Committer) -> int:
    """End what was asked to end and did not within its grace; return how many jobs that were."""
    overdue = store.overdue(SWEEP_ROWS_MAX)
    return _written(committer, [(CancelJob(job_id, 0, force=True),) for job_id in overdue], overdue)


def cancel_orphans(store: Store, committer: Committer) -> int:
    """Cancel children whose parent has ended without them; return how many were asked to end."""
    orphans = store.orphans(SWEEP_ROWS_MAX)
    return _written(committer, [(CancelJob(job_id, CANCEL_GRACE_MS),) for job_id in orphans], orphans)


def _written(committer: Committer, bundles: Sequence[Bundle], job_ids: Sequence[str]) -> int:
    """Write a bundle for each job and return how many were taken; one that is refused stops no other."""
    taken = 0
    for job_id, outcome in zip(job_ids, committer.call_all(bundles), strict=True):
        if isinstance(outcome, StoreError):
            raise outcome
        if not isinstance(outcome, BaseException):
            taken += 1
        # Another sweeper was faster, or the holder finished in time: both are as good.
        elif not isinstance(outcome, StaleLease):
            _log.warning("job %s: refused in a sweep, %s", job_id, outcome, extra={"action": "sweep.refused"})
    return taken
