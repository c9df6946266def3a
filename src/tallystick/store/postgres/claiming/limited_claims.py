"""Claims of queues with limits: what is taken of them, decided by the core from what the server holds.

The rows of the queues are held from the look to COMMIT, so no two claims count the same slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from tallystick.core.limits import CLAIM_BATCH_JOBS_MAX
from tallystick.core.queues.admitting import Line, Slot, Waiting, choose
from tallystick.store.api import ClaimJobs
from tallystick.store.postgres.lists.arrays import texts
from tallystick.store.postgres.statements import sql
from tallystick.store.sql.queueing.managed import BEGUN_MAX, Managed, Search, needs_slots, split_row

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


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


def chosen(batch: PostgresBatch, queue: Managed, request: ClaimJobs) -> list[str]:
    """Return the jobs of a queue that this claim may take."""
    if queue.is_paused:
        return []
    search = _Search(batch, queue, request)
    picked = choose(queue.picture, search.begun(), search.lines(), search.wanted, request.owner)
    return queue.take(picked, request.only)


class _Search(Search):
    """What the server holds of one queue."""

    _batch: PostgresBatch

    def __init__(self, batch: PostgresBatch, queue: Managed, request: ClaimJobs) -> None:
        super().__init__(batch, queue, CLAIM_BATCH_JOBS_MAX if request.only else request.limit)
        self._handlers = texts([f"{name} {version}" for name, version in request.handlers])

    def begun(self) -> Iterator[Waiting]:
        asked = (self._queue.name, self._batch.times.wall, self._handlers, BEGUN_MAX)
        for job_id, key, first in self._batch.rows("begun_jobs", asked):
            yield Waiting(job_id, key, bool(first))

    def _lines(self, keys: list[str]) -> Iterator[Line]:
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
            jobs = list(rows)
            if limits.order == "fifo":
                jobs.sort(key=itemgetter(3))
            yield Line(key, [Waiting(row[0], row[1], bool(row[2])) for row in jobs])
