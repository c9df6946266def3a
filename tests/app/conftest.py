"""A Tally on a fresh file, with a clock that the test owns where it asks for one."""

from __future__ import annotations

import pytest

from tallystick import Tally
from tallystick.clock import VirtualClock
from tests.app.by_hand import Hand


@pytest.fixture
def app(tmp_path):
    tally = Tally(f"sqlite:///{tmp_path}/shop.db")
    yield tally
    tally.close()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def timed(tmp_path, clock):
    tally = Tally(f"sqlite:///{tmp_path}/timed.db", clock=clock)
    yield tally
    tally.close()


@pytest.fixture
def hand(timed, clock):
    return Hand(timed, clock)
