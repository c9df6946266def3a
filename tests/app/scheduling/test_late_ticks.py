"""Ticks that come late, or in an hour that comes twice, on both stores."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick import Tally
from tallystick.testing.stepping import check_store, tick_schedules


def ticks_of(app: Tally, name: str) -> list[str]:
    """Return the instants of the ticks that became jobs, oldest first."""
    jobs = app.jobs(tag=f"schedule:{name}", limit=1000)
    return sorted(job.row().idempotency_key.removeprefix(f"schedule:{name}:") for job in jobs)


def revision(app, name):
    """Return how often the row of a schedule was written."""
    return app.runtime().store.schedule(name).rev


def test_a_tick_missed_in_the_hour_that_comes_twice_is_made_up_for_at_once(timed, clock):
    """Berlin's clocks show 02:30 at 00:30Z and at 01:30Z; no worker runs from 00:20Z to 01:10Z."""

    @timed.schedule("30 2 * * *", tz="Europe/Berlin", missed="last")
    @timed.workflow
    def nightly() -> None: ...

    clock.jump_wall(wall("2026-10-24T12:00:00Z") - clock.wall_ms())
    timed.declare_schedules()
    clock.advance(wall("2026-10-25T01:10:00Z") - clock.wall_ms())
    tick_schedules(timed)
    assert ticks_of(timed, "nightly") == ["2026-10-25T00:30:00Z"]
    assert timed.schedules.get("nightly").next_at == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    written = revision(timed, "nightly")
    tick_schedules(timed)
    assert revision(timed, "nightly") == written
    assert check_store(timed) == []


def test_a_schedule_that_is_new_in_the_hour_that_comes_twice_has_no_tick_before_it(timed, clock):
    @timed.workflow
    def nightly() -> None: ...

    clock.jump_wall(wall("2026-10-25T01:05:00Z") - clock.wall_ms())
    view = timed.schedules.add("fresh", nightly, "30 2 * * *", tz="Europe/Berlin")
    assert view.next_at == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    tick_schedules(timed)
    assert ticks_of(timed, "fresh") == []


def wall(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
