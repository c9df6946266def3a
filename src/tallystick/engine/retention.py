"""Retention: finished jobs are kept for as long as somebody says, then removed a batch at a time.

Every batch is a bundle of its own in the flushes of the committer, so that removing a million jobs holds
nobody up for longer than one batch takes, and a crash in the middle leaves whole jobs only.
"""

from __future__ import annotations

from tallystick.core.limits import PRUNE_BATCH_JOBS_MAX
from tallystick.engine.committer import Committer
from tallystick.errors import BadInput
from tallystick.store.api import Pruned, PruneJobs


def prune(committer: Committer, older_ms: int, limit: int) -> int:
    """Remove up to `limit` jobs that ended at least `older_ms` ago, and return how many are gone.

    It begins again until it finds nothing: children go first, and only then may their parents.
    """
    if limit < 1:
        raise BadInput(f"a limit of {limit} removes nothing; give at least 1")
    removed, after = 0, ""
    found = False
    while removed < limit:
        looked_at = min(PRUNE_BATCH_JOBS_MAX, limit - removed)
        gone = committer.call((PruneJobs(older_ms, looked_at, after),))
        assert isinstance(gone, Pruned)
        removed += gone.jobs
        found = found or gone.jobs > 0
        if gone.after is None:
            if not found:
                break
            found = False
        after = gone.after or ""
    return removed
