"""Where in the queue a search may begin, so that it does not step over everything that was claimed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tallystick.clock import Clock
from tallystick.store.api import ClaimJobs

# A search looks at the whole queue at least this often, unless that has become expensive.
FLOOR_SECONDS: Final = 1.0
# Whoever submits may be this much later with his COMMIT than others and is still found at once.
FLOOR_MARGIN_MS: Final = 1_000
# A look at the whole queue that takes this long is expensive: something keeps vacuum from its work.
COSTLY_SECONDS: Final = 0.010
# Looks at the whole queue may take one part in so many of the time.
COSTLY_SHARE: Final = 20
# But not rarer than this: one look that a busy machine held up says nothing about the queue, and a job that
# was taken back from a dead worker stands below the floor, because it is due since it was submitted.
REST_SECONDS_MAX: Final = 5.0


class _Look(NamedTuple):
    """The last look at the whole queue: when it was, and how long it took."""

    at: float = float("-inf")
    seconds: float = 0.0

    @property
    def is_costly(self) -> bool:
        return self.seconds >= COSTLY_SECONDS

    @property
    def rest(self) -> float:
        """Return how long nobody looks at the whole queue after that."""
        return min(self.seconds * COSTLY_SHARE, REST_SECONDS_MAX) if self.is_costly else 0.0


class Floors:
    """Where a search may begin, after a search that took whatever was due, or as much as it wanted.

    What was claimed stays in the index until a vacuum, and every search would step over all of it. A job that
    was committed late, or resumed with an old due time, may stand below: so a search that finds less than it
    wants looks from the very beginning, and so does every search once a second. While somebody keeps vacuum
    away that becomes ever more expensive; then such looks take a twentieth of the time, or come every few
    seconds, and a search that was not allowed one `owes` it.
    """

    def __init__(self, clock: Clock) -> None:
        """Know nothing yet."""
        self._clock = clock
        self._known: dict[ClaimJobs, int] = {}
        self._looks: dict[ClaimJobs, _Look] = {}
        self._owing: set[ClaimJobs] = set()

    @property
    def owes(self) -> bool:
        """Tell whether somebody must search again although nothing new has come."""
        return bool(self._owing)

    def floor(self, request: ClaimJobs) -> int:
        """Return the due time to begin at."""
        key = _key(request)
        look = self._looks.get(key, _Look())
        if self._clock.monotonic() - look.at < max(FLOOR_SECONDS, look.rest):
            return self._known.get(key, 0)
        return 0

    def wants_time(self, request: ClaimJobs) -> bool:
        """Tell whether a search is to be told the time, so that the next may begin there."""
        return self._looks.get(_key(request), _Look()).is_costly

    def may_look(self, request: ClaimJobs) -> bool:
        """Tell whether a search that fell short may look at the whole queue, and note it if it may not."""
        key = _key(request)
        look = self._looks.get(key, _Look())
        if self._clock.monotonic() - look.at >= look.rest:
            return True
        self._owing.add(key)
        return False

    def began(self) -> float:
        """Return the instant from which a look at the whole queue is measured."""
        return self._clock.monotonic()

    def looked(self, request: ClaimJobs, began: float) -> None:
        """Remember a look at the whole queue."""
        now = self._clock.monotonic()
        self._looks[_key(request)] = _Look(now, now - began)
        self._owing.discard(_key(request))

    def learn(self, request: ClaimJobs, floor: int, due: Sequence[int], wall: int | None) -> None:
        """Remember how far a search got: to the first that it found, or to now if it has left nothing."""
        key = _key(request)
        if due and len(due) >= request.limit:
            reached = min(due)
        elif wall is not None:
            reached = wall
        else:
            self._known.pop(key, None)
            return
        self._known[key] = max(floor, reached - FLOOR_MARGIN_MS)


def _key(request: ClaimJobs) -> ClaimJobs:
    return request._replace(limit=0)
