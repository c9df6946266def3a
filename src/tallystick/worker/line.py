"""Jobs claimed ahead of the slots that will run them: so many that a flush is worth its sync.

Only functions that return at once make this worth while, and only they may stand here: as soon as nobody
takes from the line, all of it is given back, and for some time nobody claims ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tallystick.core.derive import AbortReason

if TYPE_CHECKING:
    from tallystick.engine.segment import Segment
    from tallystick.store.api import Bundle, ClaimedJob
    from tallystick.worker.worker import Worker

# So many times as many jobs as there are slots are claimed ahead, and never more than these.
_AHEAD: Final = 3
_AHEAD_JOBS_MAX: Final = 256
# After jobs had to be given back, this many claims are made without claiming ahead.
_WARY_CLAIMS: Final = 256


class Line:
    """The segments of one worker that are claimed and have not begun."""

    def __init__(self, worker: Worker) -> None:
        """Begin with none."""
        self._worker = worker
        self._waiting: deque[Segment] = deque()
        self._asked = False
        self._wary = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._waiting)

    def room(self) -> int:
        """Return how many jobs to claim ahead now."""
        if self._waiting or self._asked:
            return 0
        if self._wary:
            self._wary -= 1
            return 0
        self._asked = True
        return min(_AHEAD * self._worker.options.concurrency, _AHEAD_JOBS_MAX)

    def extend(self, claimed: Iterable[ClaimedJob]) -> None:
        """Let the jobs of a claim ahead wait here, if it found any; their leases are renewed."""
        self._asked = False
        self._waiting.extend(self._worker.hold(job) for job in claimed)

    def next(self) -> Segment | None:
        """Return who is first, if anybody is."""
        return self._waiting.popleft() if self._waiting else None

    def give_back(self) -> list[tuple[Segment, Bundle]]:
        """Return everybody with the bundle that leaves the job to whoever has a slot; nobody is charged."""
        if self._waiting:
            self._wary = _WARY_CLAIMS
        left, self._waiting = self._waiting, deque()
        return [(segment, self._released(segment)) for segment in left]

    def _released(self, segment: Segment) -> Bundle:
        # It was due and stays so: it keeps its place before those that came after it.
        at = segment.claimed.created_at
        return segment.released(AbortReason.RELEASED, charged=False, ready_at=at)
