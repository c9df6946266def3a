"""Retention: finished jobs are kept for as long as the user says, then removed in batches.

Every batch is a bundle of its own in the flushes of the committer, so that removing a million jobs holds
no other bundle up for longer than one batch takes, and a crash in the middle leaves whole jobs only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tallystick.core.durations import duration_ms
from tallystick.core.effects.requests import PruneEffects
from tallystick.core.limits import PRUNE_BATCH_JOBS_MAX
from tallystick.engine.committer import Committer
from tallystick.errors import BadDuration, BadInput
from tallystick.store.api import Pruned, PruneJobs

# A worker that prunes looks from the oldest job on about this often, more often if jobs are kept for less.
PASS_SECONDS_MAX: Final = 60.0
_PASSES_PER_KEEP: Final = 10

BY_HAND: Final = "prune"
"""The author of a removal that a person or a program asked for; workers remove as retention."""


def age_ms(value: str | timedelta) -> int:
    """Return an age in milliseconds; refuse a bare number: 30 would mean seconds where days are meant.

    >>> age_ms("30d")
    2592000000
    """
    ms = duration_ms(value)
    if not isinstance(value, timedelta) and not str(value).strip()[-1:].isalpha():
        raise BadDuration(
            f"{value!r} has no unit, and what is removed is gone: write {value}d or {value}s",
            value=value,
            reason="it has no unit",
        )
    return ms


def retention_ms(value: str | timedelta) -> int:
    """Return how long jobs are kept after their end, in milliseconds; refuse to keep nothing at all."""
    ms = age_ms(value)
    if ms < 1:
        raise BadDuration(
            f"{value!r} keeps nothing; to keep everything, leave it out", value=value, reason="it is nothing"
        )
    return ms


class Pruning:
    """Removes what was kept long enough while a worker runs: one batch per call, a pause after each pass."""

    def __init__(self, committer: Committer, keep_ms: int, now: float) -> None:
        """Begin with a pass at once; `now` is on the clock that every call of `tick` is on."""
        self._committer = committer
        self._keep_ms = keep_ms
        self._pause = min(PASS_SECONDS_MAX, keep_ms / 1000 / _PASSES_PER_KEEP)
        self._at = now
        self._after = ""
        self._found = False

    def tick(self, now: float) -> int:
        """Look at the next batch if it is time, and return how many jobs are gone."""
        if now < self._at:
            return 0
        # A batch that fails is tried again after the pause of a whole pass.
        after, self._after, self._at = self._after, "", now + self._pause
        gone = self._committer.call((PruneJobs(self._keep_ms, PRUNE_BATCH_JOBS_MAX, after),))
        assert isinstance(gone, Pruned)
        self._found = gone.jobs > 0 or (self._found and after != "")
        self._after = gone.after or ""
        if self._after or self._found:
            # There is more; or children have gone, and now their parents may.
            self._at = now
        return gone.jobs


class PruningEffects:
    """Removes effects that were kept long enough, of jobs that are gone: one batch per call, and a pause."""

    def __init__(self, committer: Committer, keep_ms: int, now: float) -> None:
        """Begin at once; `now` is on the clock that every call of `tick` is on."""
        self._committer = committer
        self._keep_ms = keep_ms
        self._pause = min(PASS_SECONDS_MAX, keep_ms / 1000 / _PASSES_PER_KEEP)
        self._at = now

    def tick(self, now: float) -> int:
        """Remove the next batch if it is time, and return how many effects are gone."""
        if now < self._at:
            return 0
        self._at = now + self._pause
        gone = self._committer.call((PruneEffects(self._keep_ms, PRUNE_BATCH_JOBS_MAX),))
        assert isinstance(gone, int)
        if gone == PRUNE_BATCH_JOBS_MAX:
            self._at = now  # there may be more
        return gone


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
        gone = committer.call((PruneJobs(older_ms, looked_at, after, BY_HAND),))
        assert isinstance(gone, Pruned)
        removed += gone.jobs
        found = found or gone.jobs > 0
        if gone.after is None:
            if not found:
                break
            found = False
        after = gone.after or ""
    return removed
