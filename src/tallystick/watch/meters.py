"""Instruments of OpenTelemetry, for programs that have set a meter provider: ours is never set.

They count what the series of a process count (`process_series.py`), by the same observers. Where no provider
is set when a worker starts, nothing is counted and nothing is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from tallystick.core.lifecycles import JobState
from tallystick.engine.observe import (
    CancelledHere,
    Claimed,
    Flushed,
    JobFinished,
    JobHeld,
    Observers,
    PublishTried,
    Reclaimed,
    Renewed,
    StaleReport,
    TryFailed,
)

_NAME: Final = "tallystick"
# The provider that stands for none has no public name.
_NONE: Final = "_ProxyMeterProvider"


class Meters:
    """The instruments of one process."""

    def __init__(self, meter: Meter, observers: Observers) -> None:
        """Count from now on."""
        self._running: Sized = ()
        counter, histogram = meter.create_counter, meter.create_histogram
        claimed = counter("tallystick.jobs.claimed", "{job}", "Jobs that began or went on here.")
        self._ended = counter("tallystick.jobs.ended", "{job}", "Jobs that this process has ended.")
        held = counter("tallystick.jobs.held", "{job}", "Jobs held here for a person.")
        tries = counter("tallystick.tries.failed", "{try}", "Tries of steps that failed and are repeated.")
        reclaimed = counter("tallystick.reclaims", "{attempt}", "Attempts of lost workers taken back here.")
        stale = counter("tallystick.stale_reports", "{report}", "Reports refused: their lease was over.")
        self._failed = counter("tallystick.flushes.failed", "{flush}", "Flushes that the store did not take.")
        self._bundles = histogram("tallystick.flush.bundles", "{bundle}", "Bundles that shared a flush.")
        self._seconds = histogram("tallystick.flush.duration", "s", "Time of a flush, durable at its end.")
        renewal = histogram("tallystick.lease.renewal.duration", "s", "Time to renew the leases.")
        self._publishes = counter(
            "tallystick.publishes", "{directive}", "Directives that went out, or did not."
        )
        self._publish = histogram(
            "tallystick.publish.duration", "s", "Time of an endpoint to take a directive."
        )
        meter.create_observable_up_down_counter(
            "tallystick.slots.taken", [self._taken], "{job}", "Jobs that run here."
        )
        observers.on(Flushed, self._flushed)
        observers.on(Claimed, lambda got: claimed.add(len(got.jobs)))
        observers.on(JobFinished, lambda end: self._end(end.handler, end.state))
        observers.on(CancelledHere, lambda end: self._end(end.handler, JobState.CANCELLED))
        observers.on(JobHeld, lambda each: held.add(1, {"hold": each.hold}))
        observers.on(TryFailed, lambda tried: tries.add(1, {"workflow": tried.handler}))
        observers.on(Reclaimed, lambda taken: reclaimed.add(1, {"became": taken.became.name}))
        observers.on(StaleReport, lambda _report: stale.add(1))
        observers.on(PublishTried, self._published)
        observers.on(Renewed, lambda renewed: renewal.record(renewed.seconds))

    def watch(self, running: Sized) -> None:
        """Tell from now on how many jobs a worker has."""
        self._running = running

    def _taken(self, _options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(len(self._running))]

    def _end(self, workflow: str | None, state: str) -> None:
        named = {} if workflow is None else {"workflow": workflow}
        self._ended.add(1, {**named, "state": str(state)})

    def _published(self, tried: PublishTried) -> None:
        self._publishes.add(1, {"service": tried.service, "became": tried.became})
        if tried.became == "sent":
            self._publish.record(tried.seconds)

    def _flushed(self, flush: Flushed) -> None:
        self._bundles.record(flush.bundles)
        self._seconds.record(flush.seconds)
        if flush.failed:
            self._failed.add(1)


def meters_of(observers: Observers) -> Meters | None:
    """Return the instruments of this process, or None while its program has set no meter provider."""
    provider = metrics.get_meter_provider()
    return None if type(provider).__name__ == _NONE else Meters(provider.get_meter(_NAME), observers)
