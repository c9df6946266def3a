"""What tests of brokers share: a real broker, the side of a remote worker, and an app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tallystick import RemoteStep, Tally
from tallystick.clock import VirtualClock
from tests.remote.brokers import nats_server, redis_server
from tests.remote.sides import NatsSide, RedisSide, Side


@pytest.fixture(params=["nats", "redis"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    starts, kind = {"nats": (nats_server, NatsSide), "redis": (redis_server, RedisSide)}[request.param]
    folder = tmp_path / "broker"
    folder.mkdir()
    with starts(folder) as broker:
        yield kind(broker)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(side: Side, tmp_path: Path, clock: VirtualClock) -> Iterator[Tally]:
    app = Tally(f"sqlite:///{tmp_path / 'books.db'}", clock=clock)
    app.service("scan", via=side.endpoint)
    steps = [RemoteStep("s0", service="scan"), RemoteStep("s1", service="scan")]
    app.protocol("p", request_types=["scan"], steps=steps)
    yield app
    app.close()
