"""Instants in the place of durations: of a delay, of a sleep, of a timeout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tallystick import aio, sleep, wait
from tallystick.errors import BadSchedule

HOUR_MS = 3_600_000


def instant(clock, ms: int) -> datetime:
    return datetime.fromtimestamp(clock.wall_ms() / 1000, UTC) + timedelta(milliseconds=ms)


@pytest.fixture
def until(clock) -> datetime:
    return instant(clock, HOUR_MS)


def test_a_job_begins_at_the_instant_and_not_before(timed, hand, clock, until):
    @timed.workflow
    def report() -> str:
        return "done"

    later = report.opts(delay=until)
    clock.advance(HOUR_MS // 2)
    job = later.submit()
    clock.advance(HOUR_MS // 2 - 1)
    assert hand.work() == "idle"
    clock.advance(1)
    assert hand.work() == "EndJob"
    assert job.result(5) == "done"


def test_an_instant_that_has_passed_is_now(timed, hand, clock):
    @timed.workflow
    def report() -> str:
        sleep(instant(clock, -HOUR_MS))
        return "done"

    job = report.opts(delay=instant(clock, -HOUR_MS)).submit()
    while hand.work() != "EndJob":
        clock.advance(1)
    assert job.result(5) == "done"


def test_a_sleep_ends_at_its_instant_whatever_was_replayed_meanwhile(timed, hand, clock, until):
    @timed.workflow
    def nap() -> str:
        sleep(until)
        return "rested"

    nap.submit()
    assert hand.work() == "Await"
    clock.advance(HOUR_MS - 1)
    assert hand.work() == "idle"
    clock.advance(1)
    assert hand.work() == "EndJob"


def test_a_wait_gives_up_at_its_instant(timed, hand, clock, until):
    @timed.workflow
    def approval() -> str:
        return "yes" if wait("go", bool, timeout=until) else "nobody came"

    job = approval.submit()
    assert hand.work() == "Await"
    clock.advance(HOUR_MS)
    assert hand.work() == "EndJob"
    assert job.result(5) == "nobody came"


def test_on_a_loop_too(timed, hand, clock, until):
    @timed.workflow
    async def nap() -> str:
        await aio.sleep(until)
        return "rested"

    nap.submit()
    assert hand.work() == "Await"
    clock.advance(HOUR_MS)
    assert hand.work() == "EndJob"


def test_an_instant_without_a_time_zone_is_refused(timed):
    @timed.workflow
    def report() -> None: ...

    with pytest.raises(BadSchedule, match="has no time zone"):
        report.opts(delay=datetime(2027, 1, 31))
