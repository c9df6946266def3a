"""Find the slots whose lease may have ended without looking at all the others.

Slots are filed by the instant at which their timeout began, into few buckets of consecutive instants. A
heartbeat moves nothing: it only writes the slot's own timestamp. When a bucket comes due its slots are
looked at, and those that were renewed meanwhile are filed again under their new instant. So filing is
O(1), and finding what expired costs a look at each entry that could have, never a scan of all slots.

Entries of slots that have moved on stay until their bucket comes due, or until they outnumber the live
ones; then they are swept out, which costs O(1) for each entry ever filed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

BUCKETS_PER_TIMEOUT = 16
SWEEP_MIN = 4096


class ExpiryIndex:
    """Slots under the instant at which their timeout began; may hold slots that have moved on."""

    __slots__ = ("_buckets", "_width", "last", "last_from", "last_until", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._width = max(1, timeout_ms // BUCKETS_PER_TIMEOUT)
        self._buckets: dict[int, array[int]] = {}
        # The bucket of the last filing, and the instants that belong to it. They mostly come in order, so a
        # hot path may append to `last` by itself when its instant is between the two.
        self.last: array[int] = array("I")
        self.last_from = 0
        self.last_until = 0

    @property
    def entries(self) -> int:
        """Return how many entries there are, dead ones too."""
        return sum(map(len, self._buckets.values()))

    def file(self, slot: int, began_ms: int) -> None:
        """Remember that this slot's timeout began at this instant."""
        if not self.last_from <= began_ms < self.last_until:
            self._turn_to(began_ms)
        self.last.append(slot)

    def file_many(self, slots: bytes, began_ms: int) -> None:
        """Remember the same instant for many slots, given as native unsigned 32-bit integers."""
        if not self.last_from <= began_ms < self.last_until:
            self._turn_to(began_ms)
        self.last.frombytes(slots)

    def is_crowded(self, live: int) -> bool:
        """Tell whether dead entries outnumber the live ones, so that a sweep is worth its cost."""
        return self.entries > 2 * live + SWEEP_MIN

    def sweep(self, live: Callable[[array[int]], array[int]]) -> None:
        """Keep of each bucket only the slots that `live` returns."""
        kept = {key: live(slots) for key, slots in self._buckets.items()}
        self._buckets = {key: slots for key, slots in kept.items() if slots}
        self.last_from = self.last_until = 0

    def take_due(self, now_ms: int) -> list[int]:
        """Remove and return every slot whose timeout may be over; the caller files back what lives."""
        newest = (now_ms - self.timeout_ms) // self._width
        due = [key for key in self._buckets if key <= newest]
        if not due:
            return []
        slots: set[int] = set()
        for key in due:
            slots.update(self._buckets.pop(key))
        self.last_from = self.last_until = 0
        return sorted(slots)

    def _turn_to(self, began_ms: int) -> None:
        key = began_ms // self._width
        self.last = self._buckets.setdefault(key, array("I"))
        self.last_from = key * self._width
        self.last_until = self.last_from + self._width
