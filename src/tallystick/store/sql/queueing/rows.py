"""Queues on SQL stores: a row in the place of the one that was seen, and what is read of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tallystick.core.queues.admitting import Slot, rest_ms
from tallystick.core.queues.rows import Queue, QueueTurn, SaveQueue, refills
from tallystick.errors import QueueChanged
from tallystick.store.writing import OpenTransaction, insist

# Later than any bucket is full again.
_ALL_US: Final = (1 << 63) - 1


def save_queue(batch: OpenTransaction, request: SaveQueue) -> None:
    """Put a queue in the place of the one that was seen, and give slots to those of its jobs that run."""
    queue = request.queue
    before = [Queue._make(row) for row in batch.rows("queue", (queue.queue,))]
    batch.expect("put_queue", (*queue, request.seen), QueueChanged(queue=queue.queue))
    if before and refills(before[0].limits, queue.limits):
        insist(batch, "refill", (queue.queue,))
        batch.run("trim_buckets", (queue.queue, _ALL_US))
    # As many as there are: none may run now.
    batch.run("adopt_slots", (queue.queue,))
    # Slots that waiting jobs hold are free when the queue holds none any more, or nothing would go on.
    batch.run("set_holds", (queue.queue, int(queue.limits.hold_slots)))


class QueueReads(ABC):
    """What is read of queues."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def queues(self, *, after: str, limit: int) -> list[Queue]:
        """Return a page of the queues that have a row, by name."""
        return [Queue._make(row) for row in self.rows("queues", (after, limit))]

    def queue(self, name: str) -> Queue | None:
        """Return one queue, if it has a row."""
        return next((Queue._make(row) for row in self.rows("queue", (name,))), None)

    def limited(self) -> list[str]:
        """Return the names of all queues that have a row."""
        return [name for (name,) in self.rows("limited_names")]

    def rest_of(self, names: Iterable[str], *, asked_ms: int = 0) -> int | None:
        """Return for how many milliseconds these queues may be left alone; None if nothing waits in them."""
        now = self.now()
        rests = [rest for name in names if (rest := self._rest_of(name, now, asked_ms)) is not None]
        return min(rests, default=None)

    def _rest_of(self, name: str, now: int, asked_ms: int) -> int | None:
        rows = self.rows("queue_turn", (name,))
        ((due, _oldest_at),) = self.rows("queue_depth", (name, now, 1))
        if not rows or not due:
            return None
        *row, turn, full_us, soonest_us, taken = rows[0]
        queue = Queue._make(row)
        if queue.paused_by is not None:
            return None
        turns = QueueTurn(turn, full_us)
        return rest_ms(queue.limits, turns, soonest_us, taken, now * 1_000, asked_us=asked_ms * 1_000)

    def taken_slots(self, name: str) -> list[Slot]:
        """Return the slots of a queue that count now."""
        return [Slot._make(row) for row in self.rows("taken_slots", (name,))]
