"""Directives that go out are heard of by service and by what became of them, in both kinds of series."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tallystick import Pull, Tally
from tallystick.clock import VirtualClock
from tallystick.engine.observe import PublishTried
from tallystick.watch.meters import Meters
from tallystick.watch.process_series import ProcessSeries
from tests.patience import wait_until
from tests.remote.api_in_thread import at_work, served
from tests.remote.receiver import Receiver, receiving
from tests.remote.test_publish import command, declare, directive, look, webhook


class Counted:
    """What the series of a process and the instruments of a program say of publishing."""

    def __init__(self, app: Tally) -> None:
        observers = app.runtime().observers
        assert PublishTried not in observers.wanted, "nothing listens where nothing counts"
        self._series = ProcessSeries(observers)
        self._reader = InMemoryMetricReader()
        self._meters = Meters(MeterProvider([self._reader]).get_meter("test"), observers)

    def of(self, service: str, became: str) -> float:
        name, labels = "tallystick_publishes_total", {"service": service, "became": became}
        return self._series.registry.get_sample_value(name, labels) or 0.0

    @property
    def timed(self) -> float | None:
        return self._series.registry.get_sample_value("tallystick_publish_seconds_count")

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        (resource,) = data.resource_metrics if data is not None else ()
        (scope,) = resource.scope_metrics
        return [point for metric in scope.metrics if metric.name == name for point in metric.data.data_points]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'books.db'}"


def test_what_is_sent_is_counted_with_the_time_that_it_took(url: str, receiver: Receiver):
    app = declare(url, scan=webhook(receiver))
    counted = Counted(app)
    with app.worker():
        for number in range(3):
            app.command(command(number))
        wait_until(lambda: counted.of("scan", "sent") == 3)
    assert counted.timed == 3
    (point,) = counted.points("tallystick.publishes")
    assert (point.attributes, point.value) == ({"service": "scan", "became": "sent"}, 3)
    (took,) = counted.points("tallystick.publish.duration")
    assert took.count == 3
    assert took.sum > 0
    app.close()


def test_tries_that_fail_are_counted_and_the_last_one_is_given_up(url: str, receiver: Receiver):
    receiver.answer = lambda _got: (503, {}, b"")
    clock = VirtualClock()
    app = declare(url, clock=clock, scan=webhook(receiver))
    counted = Counted(app)
    with app.worker():
        job = app.command(command())
        for tries, wait_ms in enumerate((30_000, 120_000, 600_000), start=1):
            wait_until(lambda so_far=tries: counted.of("scan", "failed") == so_far)
            clock.advance(wait_ms)
        wait_until(lambda: counted.of("scan", "given up") == 1)
    assert look(app, job.id).job.state == "FAILED_FINAL"
    assert (counted.of("scan", "failed"), counted.timed) == (3, 0)
    app.close()


def test_what_a_service_never_takes_is_given_up_at_once(url: str, receiver: Receiver):
    receiver.answer = lambda _got: (422, {}, b"no")
    app = declare(url, scan=webhook(receiver))
    counted = Counted(app)
    with app.worker():
        app.command(command())
        wait_until(lambda: counted.of("scan", "given up") == 1)
    assert counted.of("scan", "failed") == 0
    app.close()


def test_tries_for_an_endpoint_that_no_worker_has_are_counted_too(url: str, receiver: Receiver):
    clock = VirtualClock()
    maker = declare(url, clock=clock, scan=webhook(receiver))
    job = maker.command(command())
    other = declare(url, clock=clock, scan=Pull())
    counted = Counted(other)
    with other.worker():
        for tries in range(1, 4):
            clock.advance(660_001)
            wait_until(lambda so_far=tries: counted.of("scan", "failed") == so_far)
        clock.advance(660_001)
        wait_until(lambda: counted.of("scan", "given up") == 1)
    assert directive(maker, job.id).state == "FAILED_FINAL"
    maker.close()
    other.close()


def test_what_a_remote_worker_asks_for_is_given_and_has_no_time(url: str):
    with served(url) as api:
        counted = Counted(api.app)
        jobs = api.submit(5)
        with at_work(api, lambda given: given.payload["n"], concurrency=5):
            assert [job.result(timeout=60) for job in jobs] == list(range(5))
        (service,) = {each.service for job in jobs for each in look(api.app, job.id).steps}
        assert counted.of(service, "given") == 5
        assert counted.timed == 0
