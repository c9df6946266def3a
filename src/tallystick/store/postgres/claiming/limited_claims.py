"""Claims of queues with limits: what is taken of them, decided by the core from what the server holds.

The rows of the queues are held from the look to COMMIT, so no two claims count the same slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from tallystick.core.limits import CLAIM_BATCH_JOBS_MAX
from tallystick.core.queues.admitting import NO_KEY, DueOfKey, Slot, Waiting, choose
from tallystick.store.api import ClaimJobs
from tallystick.store.postgres.server.wire import texts
from tallystick.store.postgres.statements import sql
from tallystick.store.sql.queueing.keyless import WINDOW, Passed, Place, Walks
from tallystick.store.sql.queueing.managed import BEGUN_MAX, LEVELS, Managed, Search, needs_slots, split_row

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch

_Found = tuple[str, str, int, int]


def managed(batch: PostgresBatch, queues: Sequence[str]) -> dict[str, Managed]:
    """Return those of these queues that have limits or are paused, and hold them until this is over."""
    listed = msgspec.json.encode(queues).decode()
    seen = [split_row(row) for row in batch.rows("managed_queues", (listed,))]
    counted = [queue.queue for queue, _turn in seen if queue.paused_by is None and needs_slots(queue)]
    talk = batch.connection
    with talk.pipeline():
        wall = batch.ask_wall()
        # In statements of their own behind the lock: they see what those have written that held it before.
        for name in counted:
            talk.execute(sql("free_slots"), (name,))
        asked = [talk.execute(sql("slots"), (name,)) for name in counted]
    batch.take_wall(wall)
    slots = {
        name: [Slot._make(row) for row in answer.fetchall()]
        for name, answer in zip(counted, asked, strict=True)
    }
    return {queue.queue: Managed(queue, turn, slots.get(queue.queue, []), batch.wall) for queue, turn in seen}


def chosen(batch: PostgresBatch, queue: Managed, request: ClaimJobs, walks: Walks) -> list[str]:
    """Return the jobs of a queue that this claim may take."""
    if queue.is_paused:
        return []
    search = _PostgresSearch(batch, queue, request, walks)
    served = walks.served(queue.name)
    picked = choose(queue.picture, search.begun(), search.lines(), search.wanted, request.owner, served)
    walks.note(queue.name, picked)
    return queue.take(picked, request.only)


class _PostgresSearch(Search):
    """What the server holds of one queue."""

    _batch: PostgresBatch

    def __init__(self, batch: PostgresBatch, queue: Managed, request: ClaimJobs, walks: Walks) -> None:
        super().__init__(batch, queue, CLAIM_BATCH_JOBS_MAX if request.only else request.limit)
        self._walks = walks
        self._handlers = texts([f"{name} {version}" for name, version in request.handlers])

    def begun(self) -> Iterator[Waiting]:
        asked = (self._queue.name, self._batch.times.wall, self._handlers, BEGUN_MAX)
        for job_id, key, first in self._batch.rows("begun_jobs", asked):
            # What has begun spends no token, so it does not matter since when it waits.
            yield Waiting(job_id, key, bool(first), 0)

    def _lines(self, keys: list[str]) -> Iterator[DueOfKey]:
        if NO_KEY in keys:
            yield DueOfKey(NO_KEY, self._in_order(self._without_key()))
            keys = [key for key in keys if key != NO_KEY]
        if not keys:
            return
        queue, talk, limits = self._queue, self._batch.connection, self._queue.picture.limits
        each = self.wanted if limits.per_key is None else min(self.wanted, limits.per_key)
        with talk.pipeline():
            asked = (queue.name, texts(keys), self._batch.times.wall, self._handlers, each)
            found = talk.execute(sql("waiting_of_keys"), asked)
            listed = (queue.name, msgspec.json.encode(keys).decode())
            buckets = None if limits.key_rate is None else talk.execute(sql("buckets"), listed)
        if buckets is not None:
            queue.add_buckets(buckets.fetchall())
        for key, rows in groupby(found.fetchall(), key=itemgetter(1)):
            yield DueOfKey(key, self._in_order(rows))

    def _in_order(self, rows: Iterable[_Found]) -> list[Waiting]:
        """Return the jobs of one key, which come by priority, as the queue orders them."""
        found = list(rows)
        if self._queue.picture.limits.order == "fifo":
            found.sort(key=itemgetter(3))
        return [Waiting(job_id, key, bool(first), ready_at) for job_id, key, first, ready_at in found]

    def _without_key(self) -> Iterator[_Found]:
        """Look for jobs without a key, at all priorities at once."""
        name, walks = self._queue.name, self._walks
        starts = [(priority, start) for priority in LEVELS for start in walks[name, priority].starts]
        levels = texts([str(priority) for priority, _start in starts])
        ready_ats = texts([str(at) for _, (at, _job) in starts])
        places = texts([job for _, (_at, job) in starts])
        asked = (name, levels, ready_ats, places, self._batch.times.wall, self._handlers, WINDOW)
        windows: dict[tuple[int, Place], list[Passed]] = {start: [] for start in starts}
        for window, job_id, first, fits, ready_at in self._batch.rows("waiting_without_key", asked):
            windows[starts[window - 1]].append(Passed(job_id, bool(first), bool(fits), (ready_at, job_id)))
        for priority in LEVELS:
            found = partial(_window, windows, priority)
            for job in islice(walks[name, priority].jobs(found), self.wanted):
                yield job.job_id, NO_KEY, job.first, job.place[0]


def _window(windows: dict[tuple[int, Place], list[Passed]], priority: int, start: Place) -> list[Passed]:
    """Return a window that was asked for; one that begins where the last one ended is for the next look."""
    return windows.get((priority, start), [])
