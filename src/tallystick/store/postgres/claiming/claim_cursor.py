"""Where in the queue a search begins, so that it does not step over everything that was claimed before.

What was claimed stays in the index until a vacuum, and a search from the very beginning steps over all of it.
So a search begins at the cursor, a little before where the last one ended. What becomes due now stands behind
that. A job may also appear before it: committed long after it was submitted, resumed, taken back from a lost
worker, of a lower priority than those found last, or given up by a claim that was rolled back. Whatever the
reason, one rule finds it: the first search after `WHOLE_SECONDS` begins at the beginning; if searches from
the cursor have left slots empty meanwhile, the worker is told to search then. So no due job is hidden for
longer than that, and no more is spent on it than one such search in that time. Nothing here depends on how
long a search takes. The plain twin begins every search at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tallystick.clock import Clock
from tallystick.store.api import ClaimJobs
from tallystick.store.sql.queueing.keyless import Walks
from tallystick.tuning import is_plain

# A search begins at the beginning at least and at most this often.
WHOLE_SECONDS: Final = 1.0
# A COMMIT may come this much later than what it wrote was due, and is still found at once.
MARGIN_MS: Final = 1_000

_NEVER: Final = float("-inf")


class LimitedNames:
    """Which queues have limits, as far as this process knows: a search leaves them out by itself.

    What is known decides only whether a claim of them is made too, and is asked for again after a while.
    """

    def __init__(self, clock: Clock) -> None:
        """Know nothing."""
        self._clock = clock
        self._learned_at = _NEVER
        self.names: frozenset[str] = frozenset()

    @property
    def are_old(self) -> bool:
        """Tell whether it is time to ask."""
        return self._clock.monotonic() - self._learned_at >= WHOLE_SECONDS

    def forget(self) -> None:
        """Ask at the next claim: this process changes one."""
        self._learned_at = _NEVER

    def learn(self, names: Iterable[str]) -> None:
        """Know these."""
        self.names = frozenset(names)
        self._learned_at = self._clock.monotonic()


class ClaimCursor:
    """The cursors of one process, one for each kind of search."""

    def __init__(self, clock: Clock) -> None:
        """Know nothing: the first search begins at the beginning."""
        self._clock = clock
        self._cursors: dict[ClaimJobs, int] = {}
        self._whole_at: dict[ClaimJobs, float] = {}
        # Searches that began at a cursor and left slots empty: they cannot tell that nothing is due.
        self._owing: set[ClaimJobs] = set()
        self.limited = LimitedNames(clock)
        self.walks = Walks()

    def start(self, request: ClaimJobs) -> int:
        """Return the due time at which a search begins; 0 is the beginning."""
        key = _key(request)
        return 0 if self._is_time(key) else self._cursors.get(key, 0)

    def searched(self, request: ClaimJobs, start: int, due: Sequence[int]) -> None:
        """Remember how far a search got that began at `start`, and took jobs that were due at these times."""
        key = _key(request)
        short = len(due) < request.limit
        if not start:
            self._whole_at[key] = self._clock.monotonic()
            self._owing.discard(key)
        elif short:
            self._owing.add(key)
        if due:
            # One that left slots empty has seen all that is due; another one, what stands before these.
            reached = max(due) if short else min(due)
            self._cursors[key] = max(start, reached - MARGIN_MS)

    def look_is_due(self) -> bool:
        """Tell, once, that a search must be made though nothing new has come: one owes it, and it is time."""
        due = [key for key in list(self._owing) if self._is_time(key)]
        self._owing.difference_update(due)
        return bool(due)

    def _is_time(self, key: ClaimJobs) -> bool:
        return self._clock.monotonic() - self._whole_at.get(key, _NEVER) >= WHOLE_SECONDS


class NoCursor(ClaimCursor):
    """The plain twin: every search begins at the beginning."""

    def start(self, request: ClaimJobs) -> int:  # noqa: ARG002 (the signature is that of a cursor)
        """Return the beginning."""
        return 0


def claim_cursor(clock: Clock) -> ClaimCursor:
    """Return the cursor of this process."""
    return NoCursor(clock) if is_plain() else ClaimCursor(clock)


def _key(request: ClaimJobs) -> ClaimJobs:
    return request._replace(limit=0)
