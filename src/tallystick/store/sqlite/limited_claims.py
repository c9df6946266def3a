"""Claims of queues with limits: what is taken of them, decided by the core from what the file holds.

The writer holds the whole file, so what is counted here stays so until the claim is written.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from tallystick.core.queues.admitting import NO_KEY, DueOfKey, Waiting, choose
from tallystick.store.api import ClaimJobs, QueueHasLimits
from tallystick.store.refusals import Refused
from tallystick.store.sql.queueing.keyless import WINDOW, Passed, Place
from tallystick.store.sql.queueing.managed import BEGUN_MAX, LEVELS, Managed, Search, add_queue
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch

_Found = tuple[str, str, int, int]


@lru_cache(64)
def _listed(queues: tuple[str, ...]) -> str:
    return msgspec.json.encode(queues).decode()


def managed(batch: SqliteBatch, queues: tuple[str, ...]) -> dict[str, Managed]:
    """Return those of these queues that have limits or are paused; most programs have none."""
    rows = list(batch.cursor.execute(sql("managed_queues"), (_listed(queues),)))
    return {row[0]: add_queue(batch, row) for row in rows} if rows else {}


def refuse_limited(batch: SqliteBatch, queues: AbstractSet[str]) -> None:
    """Refuse what is to begin at once in a queue with limits: a claim decides about it, as about all."""
    for row in batch.cursor.execute(sql("managed_queues"), (_listed(tuple(sorted(queues))),)):
        raise Refused(QueueHasLimits(row[0]))


def chosen(batch: SqliteBatch, queue: Managed, request: ClaimJobs, known: str, wanted: int) -> list[str]:
    """Return the jobs of a queue that this claim may take."""
    if queue.is_paused:
        return []
    search = _SqliteSearch(batch, queue, wanted, known)
    # What has begun spends no token, so it does not matter since when it waits.
    begun = (Waiting(job_id, key, bool(first), 0) for job_id, key, first in search.begun())
    walks = batch.walks
    served = walks.served(queue.name)
    picked = choose(queue.picture, begun, search.lines(), wanted, request.owner, served)
    walks.note(queue.name, picked)
    return queue.take(picked, request.only)


class _SqliteSearch(Search):
    """What the file holds of one queue."""

    _batch: SqliteBatch

    def __init__(self, batch: SqliteBatch, queue: Managed, wanted: int, known: str) -> None:
        super().__init__(batch, queue, wanted)
        self._about = (batch.wall, known)

    def begun(self) -> list[tuple[str, str, int]]:
        asked = (self._queue.name, *self._about, BEGUN_MAX)
        return self._batch.rows("begun_jobs", asked)

    def _lines(self, keys: list[str]) -> Iterator[DueOfKey]:
        queue = self._queue
        if queue.picture.limits.key_rate is not None:
            asked = (queue.name, msgspec.json.encode(keys).decode())
            queue.add_buckets(self._batch.rows("buckets", asked))
        for key in keys:
            yield DueOfKey(key, self._line(key))

    def _line(self, key: str) -> Iterator[Waiting]:
        levels = [self._level(key, priority) for priority in LEVELS]
        return (_waiting(row) for row in _ORDERS[self._queue.picture.limits.order](levels))

    def _level(self, key: str, priority: int) -> Iterator[_Found]:
        name = self._queue.name
        if key != NO_KEY:
            asked = (name, key, priority, *self._about)
            yield from self._batch.connection.execute(sql("waiting_of_keys"), asked)
            return
        walk = self._batch.walks[name, priority]
        for job in walk.jobs(lambda start: self._window(priority, start)):
            yield job.job_id, NO_KEY, job.first, job.place[0]

    def _window(self, priority: int, start: Place) -> Iterator[Passed]:
        asked = (self._queue.name, priority, *start, *self._about, WINDOW)
        for job_id, first, fits, *place in self._batch.connection.execute(sql("waiting_without_key"), asked):
            yield Passed(job_id, bool(first), bool(fits), (place[0], place[1]))


def _waiting(row: _Found) -> Waiting:
    job_id, key, first, ready_at = row
    return Waiting(job_id, key, bool(first), ready_at)


def _by_priority(levels: list[Iterator[_Found]]) -> Iterator[_Found]:
    for level in levels:
        yield from level


def _by_age(levels: list[Iterator[_Found]]) -> Iterator[_Found]:
    return heapq.merge(*levels, key=itemgetter(3))


_ORDERS: Final[dict[str, Callable[[list[Iterator[_Found]]], Iterator[_Found]]]] = {
    "priority": _by_priority,
    "fifo": _by_age,
}
