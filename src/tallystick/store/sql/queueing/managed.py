"""Queues with limits as a claim meets them: what it sees of one, and what it leaves behind.

The same on every SQL store. A store looks for due jobs in its own way, and holds the queue's row meanwhile,
so that no two claims count the same slot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from tallystick.core.limits import PRIORITY_BEST, PRIORITY_WORST
from tallystick.core.queues.admitting import (
    LATE_US_MAX,
    NO_KEY,
    DueOfKey,
    QueuePicture,
    Slot,
    TakenSlot,
    Waiting,
    book,
)
from tallystick.core.queues.rows import KEYS_LOOKED_AT_MAX, Queue, QueueTurn
from tallystick.errors import InvariantBroken
from tallystick.store.api import ClaimedJob, Fence
from tallystick.store.writing import OpenTransaction, insist

BEGUN_MAX: Final = 1_000
"""How many jobs that have begun, and may be blocked by their keys, one claim looks at."""

LEVELS: Final = range(PRIORITY_BEST, PRIORITY_WORST + 1)
"""All priorities, the best first."""

_PAGE: Final = 8


class Managed:
    """One queue that has a row, in the transaction of a claim."""

    def __init__(self, queue: Queue, turn: QueueTurn, slots: Sequence[Slot], wall: int) -> None:
        """Take what was seen."""
        self.queue = queue
        self._full_us: dict[str, int] = {}
        self.picture = QueuePicture(queue.limits, slots, turn, self._full_us, wall * 1_000)
        self.chosen: dict[str, Waiting] = {}
        # The last key that was passed, if there are more than one claim looks at.
        self.passed: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the queue."""
        return self.queue.queue

    @property
    def is_paused(self) -> bool:
        """Tell whether nothing of it is claimed."""
        return self.queue.paused_by is not None

    @property
    def slot(self) -> TakenSlot:
        """Return what its jobs know of the slots that they take."""
        return TakenSlot(self.name, holds=self.picture.limits.hold_slots)

    def add_buckets(self, rows: Iterable[tuple[str, int]]) -> None:
        """Take what was seen of the buckets of some keys."""
        self._full_us.update(rows)

    def take(self, picked: Iterable[Waiting], only: str) -> list[str]:
        """Remember what was chosen, and return it; with `only`, that job alone."""
        self.chosen = {job.job_id: job for job in picked if only in ("", job.job_id)}
        return list(self.chosen)

    def with_slots(self, claimed: list[ClaimedJob]) -> list[ClaimedJob]:
        """Return claimed jobs, of which those of this queue know their slot."""
        if not self.chosen:
            return claimed
        return [job._replace(slot=self.slot) if job.fence.job_id in self.chosen else job for job in claimed]

    def book(self, batch: OpenTransaction, fences: Iterable[Fence], owner: str) -> None:
        """Write what the claims of these attempts leave behind."""
        claimed = [(self.chosen[fence.job_id], fence) for fence in fences if fence.job_id in self.chosen]
        turn, full_us = book(self.picture, [job for job, _fence in claimed])
        if self.passed is not None and not any(job.first for job, _fence in claimed):
            turn = turn._replace(turn=self.passed)
        if turn != self.picture.turn:
            insist(batch, "move_turn", (self.name, *turn))
        limits = self.picture.limits
        if needs_slots(self.queue):
            for job, fence in claimed:
                slot = (job.job_id, self.name, job.limit_key, fence.attempt, owner, int(limits.hold_slots))
                insist(batch, "put_slot", slot)
        for key, at in full_us.items():
            insist(batch, "put_bucket", (self.name, key, at))
        if full_us:
            # As many as are full, and for longer than a claim is late.
            batch.run("trim_buckets", (self.name, self.picture.now_us - LATE_US_MAX))
        new = sum(job.first for job, _fence in claimed)
        jobs = msgspec.json.encode([job.job_id for job, _fence in claimed]).decode()
        # One that was claimed before its queue had limits is noted too.
        if claimed and batch.changed("begin_in", (self.name, jobs)) < new:
            raise InvariantBroken("begin_in did not note all jobs that begin", statement="begin_in")


class Search(ABC):
    """The due jobs of one queue, read as far as they are wanted."""

    def __init__(self, batch: OpenTransaction, queue: Managed, wanted: int) -> None:
        """Look at nothing yet."""
        self._batch = batch
        self._queue = queue
        self.wanted = wanted

    def lines(self) -> Iterator[DueOfKey]:
        """Give the keys that wait, beginning behind the one that had the last turn; each once."""
        queue, passed = self._queue, 0
        for keys in key_pages(self._keys, queue.picture.turn.turn, self.wanted, KEYS_LOOKED_AT_MAX):
            yield from self._lines(keys)
            passed += len(keys)
            if passed >= KEYS_LOOKED_AT_MAX and keys[-1] != NO_KEY:
                queue.passed = keys[-1]

    def _keys(self, after: str, limit: int) -> list[str]:
        return [key for (key,) in self._batch.rows("waiting_keys", (self._queue.name, after, limit))]

    @abstractmethod
    def _lines(self, keys: list[str]) -> Iterator[DueOfKey]:
        """Give the due jobs of these keys, and add what their buckets hold."""


def needs_slots(queue: Queue) -> bool:
    """Tell whether anything counts the slots of a queue."""
    limits = queue.limits
    counts = (limits.concurrency, limits.per_key, limits.worker_concurrency)
    return limits.hold_slots or any(count is not None for count in counts)


def split_row(row: Sequence[Any]) -> tuple[Queue, QueueTurn]:
    """Return a row of `managed_queues`: the queue, and where its claims stand."""
    return Queue._make(row[:-2]), QueueTurn(*row[-2:])


def key_pages(
    keys: Callable[[str, int], Sequence[str]], turn: str, wanted: int, most: int
) -> Iterator[list[str]]:
    """Give the keys of a queue in the order of their turns, beginning behind `turn`, up to a number of them.

    `keys` returns so many of those that stand behind one. Jobs without a key are one more.

    >>> def some(after, limit): return [key for key in "abcdef" if key > after][:limit]
    >>> [key for page in key_pages(some, "d", 1, 100) for key in page]
    ['e', 'f', '', 'a', 'b', 'c', 'd']
    """
    left, size = most, wanted + _PAGE
    for start, end in ((turn, None), (NO_KEY, turn)):
        after = start
        if end is not None:
            yield [NO_KEY]
        while left > 0 and after != end:
            page = list(keys(after, min(size, left)))
            within = [key for key in page if end is None or key <= end]
            if within:
                yield within
            left -= len(within)
            if len(within) < min(size, left + len(within)):
                break
            after, size = page[-1], 2 * size


def add_queue(batch: OpenTransaction, row: Sequence[Any]) -> Managed:
    """Return a queue with its slots as they are now; those that do not count any more are removed."""
    queue, turn = split_row(row)
    slots: list[Slot] = []
    if queue.paused_by is None and needs_slots(queue):
        batch.run("free_slots", (queue.queue,))
        slots = [Slot._make(found) for found in batch.rows("slots", (queue.queue,))]
    return Managed(queue, turn, slots, batch.wall)
