"""The series of a store, the same from any process that asks for them.

Every look is bounded: a queue is counted up to a limit, and one look serves all questions of a few seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tallystick.clock import Clock
from tallystick.core.limits import SWEEP_ROWS_MAX
from tallystick.core.verbs.holds import Hold
from tallystick.core.watching.rows import Backlog, EndedCount, WorkerRow
from tallystick.store.api import Queues, Store
from tallystick.store.inspection import StaleReports, WorkerLeases, watched

KEPT_SECONDS: Final = 5.0
"""How long one look is good for."""

_MINUTE_MS: Final = 60_000
_WORKERS_MAX: Final = 10_000
_QUEUES_MAX: Final = 1_000


class StoreLook(NamedTuple):
    """Everything that the series of a store are made of."""

    backlog: Backlog
    workers: list[WorkerRow]
    leases: list[WorkerLeases]
    ended: list[EndedCount]
    stale: StaleReports
    # Queues that have limits.
    queues: list[str]


def look_at(store: Store) -> StoreLook:
    """Look once at a store."""
    seen = watched(store)
    inspection = store.inspect()
    backlog = seen.backlog()
    minute = backlog.now // _MINUTE_MS - 1
    ended = [count for count in seen.ended(minute * _MINUTE_MS) if count.minute == minute]
    leases = inspection.leases(SWEEP_ROWS_MAX)
    rows = store.queues(after="", limit=_QUEUES_MAX) if isinstance(store, Queues) else []
    queues = [row.queue for row in rows]
    return StoreLook(backlog, seen.workers(_WORKERS_MAX), leases, ended, inspection.stale_reports(), queues)


class StoreSeries(Collector):
    """A collector for a registry of prometheus_client."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Look when first asked."""
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[float, StoreLook] | None = None

    def collect(self) -> Iterable[Metric]:
        """Return all series; called by the registry."""
        return series_of(self._look())

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what is registered need not be looked at for it."""
        return ()

    def _look(self) -> StoreLook:
        with self._lock:
            now = self._clock.monotonic()
            if self._seen is None or now - self._seen[0] >= KEPT_SECONDS:
                self._seen = (now, look_at(self._store))
            return self._seen[1]


def series_of(look: StoreLook) -> list[Metric]:
    """Return the series of one look."""
    backlog = look.backlog
    depth = _family("tallystick_queue_depth", "Jobs that are due and wait, up to 100,000.", ("queue",))
    oldest = _family("tallystick_queue_oldest_seconds", "How long the first of them waits.", ("queue",))
    live = [worker for worker in look.workers if worker.is_live(backlog.now)]
    waits = {queue.queue: (queue.depth, queue.oldest_at) for queue in backlog.queues}
    # A queue that is known has its series while it is empty too.
    served = (name for worker in live for name in msgspec.json.decode(worker.queues))
    for name in sorted({*waits, *look.queues, *served}):
        number, oldest_at = waits.get(name, (0, None))
        depth.add_metric([name], number)
        oldest.add_metric([name], _since(backlog, oldest_at))
    held = _family("tallystick_jobs_held", "Jobs that wait for a person.", ("hold",))
    for hold in Hold:
        held.add_metric([hold.value], backlog.held.get(hold.value, 0))
    ended = _family("tallystick_jobs_ended_last_minute", "Jobs that workers ended, by state.", ("state",))
    for count in look.ended:
        ended.add_metric([count.state], count.ended)
    single = {
        "tallystick_jobs_running": ("Jobs with a lease that holds.", sum(each.held for each in look.leases)),
        "tallystick_leases_expired": (
            "Leases that ran out and were not taken back.",
            sum(each.lost for each in look.leases),
        ),
        "tallystick_jobs_in_doubt": ("Jobs held with an effect in doubt.", backlog.held.get("IN_DOUBT", 0)),
        "tallystick_workers": ("Workers that reported lately.", len(live)),
        "tallystick_worker_slots": ("Jobs that they may run at once.", sum(each.slots for each in live)),
        "tallystick_outbox_depth": ("Directives that are due and not out.", backlog.outbox),
        "tallystick_outbox_lag_seconds": (
            "How long the first of them is due.",
            _since(backlog, backlog.outbox_at),
        ),
        "tallystick_schedule_lag_seconds": (
            "How long the first tick is due.",
            _since(backlog, backlog.tick_at),
        ),
        "tallystick_schedules_held": ("Schedules that wait for a person.", backlog.schedules_held),
        "tallystick_stale_reports_kept": (
            "Reports that came too late, since the beginning.",
            look.stale.total,
        ),
    }
    return [
        depth,
        oldest,
        held,
        ended,
        *(GaugeMetricFamily(name, text, value=value) for name, (text, value) in single.items()),
    ]


def _family(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _since(backlog: Backlog, at: int | None) -> float:
    return 0.0 if at is None else max(0, backlog.now - at) / 1000
