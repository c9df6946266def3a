"""The series of one process: counted by what its observers hear, at no cost where they are not asked for."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tallystick.engine.observe import (
    Claimed,
    Flushed,
    JobHeld,
    Observers,
    PublishTried,
    Reclaimed,
    Renewed,
    SegmentLeft,
    StaleReport,
    TryFailed,
)
from tallystick.store.api import EndJob
from tallystick.worker.worker import Worker

_SIZES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
# Looking for a counter by its labels costs more than counting.
_LABELS_MAX: Final = 1_024
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ProcessSeries:
    """Listens to the observers of a process, and has a registry of its own."""

    def __init__(self, observers: Observers, registry: CollectorRegistry | None = None) -> None:
        """Begin at zero."""
        self.registry = registry = CollectorRegistry() if registry is None else registry
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._flush_bundles = histogram(
            "tallystick_flush_bundles", "Bundles that shared a flush.", buckets=_SIZES
        )
        self._flush_seconds = histogram(
            "tallystick_flush_seconds", "Time of a flush, durable at its end.", buckets=_SECONDS
        )
        self._flush_failed = counter("tallystick_flushes_failed", "Flushes that the store did not take.")
        self._claimed = counter("tallystick_jobs_claimed", "Jobs that began or went on here.")
        self._ended = counter(
            "tallystick_jobs_ended", "Jobs that ran here to their end.", ("workflow", "state")
        )
        self._held = counter("tallystick_jobs_put_on_hold", "Jobs held here for a person.", ("hold",))
        self._tries = counter(
            "tallystick_tries_failed", "Tries of steps that failed and are repeated.", ("workflow",)
        )
        self._reclaimed = counter(
            "tallystick_reclaims", "Attempts of lost workers taken back here.", ("became",)
        )
        self._stale = counter("tallystick_stale_reports", "Reports refused because their lease was over.")
        self._renewal = histogram(
            "tallystick_lease_renewal_seconds", "Time to renew the leases.", buckets=_SECONDS
        )
        self._publishes = counter(
            "tallystick_publishes",
            "Directives that went out from here to their services, and tries that failed.",
            ("service", "became"),
        )
        self._publish_seconds = histogram(
            "tallystick_publish_seconds", "Time of an endpoint to take a directive.", buckets=_SECONDS
        )
        self._segments = counter("tallystick_segments", "Times that a workflow function was left.")
        observers.on(Flushed, self._flushed)
        observers.on(Claimed, lambda claimed: self._claimed.inc(len(claimed.jobs)))
        observers.on(JobHeld, lambda held: self._held.labels(held.hold).inc())
        observers.on(TryFailed, lambda tried: self._tries.labels(tried.handler).inc())
        observers.on(Reclaimed, lambda taken: self._reclaimed.labels(taken.became.name).inc())
        observers.on(StaleReport, lambda _report: self._stale.inc())
        observers.on(Renewed, lambda renewed: self._renewal.observe(renewed.seconds))
        observers.on(PublishTried, self._published)
        self._ended_of = lru_cache(_LABELS_MAX)(self._ended.labels)
        observers.on(SegmentLeft, self._left)

    def watch_slots(self, worker: Worker) -> None:
        """Show how many slots a worker has, and how many of them are taken."""
        slots = Gauge("tallystick_slots", "Jobs that may run here at once.", registry=self.registry)
        slots.set(worker.options.concurrency)
        running = Gauge("tallystick_slots_taken", "Jobs that run here.", registry=self.registry)
        running.set_function(lambda: len(worker.running))

    def _left(self, left: SegmentLeft) -> None:
        """Count a segment, and the end of its job: one call for both, because every job pays for it."""
        self._segments.inc()
        if type(left.end) is EndJob:
            self._ended_of(left.handler, left.end.state).inc()

    def _published(self, tried: PublishTried) -> None:
        self._publishes.labels(tried.service, tried.became).inc()
        if tried.became == "sent":
            self._publish_seconds.observe(tried.seconds)

    def _flushed(self, flush: Flushed) -> None:
        self._flush_bundles.observe(flush.bundles)
        self._flush_seconds.observe(flush.seconds)
        if flush.failed:
            self._flush_failed.inc()
