"""Ticks that come late, or in an hour that comes twice, on both stores."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tallystick import Job, Key, Tally
from tallystick.testing.stepping import cancel_overdue, check_store, ms_to_next_tick, tick_schedules


def ticks_of(app: Tally, name: str) -> list[str]:
    """Return the instants of the ticks that became jobs, oldest first."""
    jobs = app.jobs(tag=f"schedule:{name}", limit=1000)
    return sorted(job.row().idempotency_key.removeprefix(f"schedule:{name}:") for job in jobs)


def revision(app, name):
    """Return how often the row of a schedule was written."""
    with app.connect() as db:
        ((rev,),) = db.execute(f"SELECT rev FROM schedules WHERE schedule_id = '{name}'")
    return rev


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


@pytest.fixture
def slow(timed, clock, hand):
    """Return what declares a schedule whose first job cannot end by itself: it is not known what it did."""

    @timed.effect(key="mail:{n}")
    def mail(key: Key, n: str) -> None:
        raise OSError("reset")

    def start(missed: str) -> Job[Any]:
        @timed.schedule("every 1h", overlap="cancel_old", missed=missed)
        @timed.workflow
        def nightly(scheduled_at: datetime) -> None:
            mail(scheduled_at.isoformat())

        timed.declare_schedules()
        clock.advance(ms_to_next_tick(timed))
        tick_schedules(timed)
        hand.work()
        (job,) = timed.jobs(tag="schedule:nightly")
        return job

    return start


def writes_of(app, job):
    """Return how often the row of a job was written."""
    with app.connect() as db:
        ((rev,),) = db.execute(f"select rev from jobs where job_id = '{job.id}'")
    return rev


def ended(job, clock, app):
    """Let a job end that was asked to: a person says that its effect did not happen."""
    job.resolve(did_not_happen=True)
    cancel_overdue(app)
    clock.advance(1)
    cancel_overdue(app)
    assert job.state() == "CANCELLED"


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_a_tick_in_time_is_not_lost_however_long_the_old_job_needs_to_end(timed, clock, slow, missed):
    old = slow(missed)
    clock.advance(3_600_000)
    tick_schedules(timed)
    assert old.state() == "CANCELLING"
    assert check_store(timed) == []
    for _ in range(20):
        clock.advance(60_000)
        tick_schedules(timed)
    assert ticks_of(timed, "nightly") == ["2023-11-14T23:00:00Z"]
    ended(old, clock, timed)
    clock.advance(10_000)
    tick_schedules(timed)
    assert ticks_of(timed, "nightly") == ["2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"]
    assert timed.schedules.get("nightly").next_at == datetime(2023, 11, 15, 1, tzinfo=UTC)
    assert check_store(timed) == []


def test_while_a_tick_waits_the_store_is_written_less_and_less_often(timed, clock, slow):
    """In the first hour it looks some hundred times, and asks the old job to end once."""
    old = slow("skip")
    clock.advance(3_600_000)
    began = clock.wall_ms()
    tick_schedules(timed)
    asked, written, turns = writes_of(timed, old), revision(timed, "nightly"), 0
    while clock.wall_ms() < began + 3_000_000:
        rest = ms_to_next_tick(timed)
        assert rest >= 500
        clock.advance(rest)
        tick_schedules(timed)
        turns += 1
    assert turns == revision(timed, "nightly") - written <= 330
    assert writes_of(timed, old) == asked


def test_of_ticks_that_came_while_the_old_job_ended_the_last_is_made(timed, clock, slow):
    old = slow("last")
    clock.advance(3_600_000)
    tick_schedules(timed)
    clock.advance(2 * 3_600_000)
    ended(old, clock, timed)
    clock.advance(10_000)
    tick_schedules(timed)
    assert ticks_of(timed, "nightly") == ["2023-11-14T23:00:00Z", "2023-11-15T02:00:00Z"]


def test_a_tick_that_waits_becomes_a_job_though_its_timetable_changes(url, timed, clock, slow):
    old = slow("skip")
    clock.advance(3_600_000)
    tick_schedules(timed)
    clock.advance(120_000)
    again = Tally(url, clock=clock)

    @again.schedule("30 12 * * *", overlap="cancel_old", missed="skip")
    @again.workflow
    def nightly(scheduled_at: datetime) -> None: ...

    again.declare_schedules()
    assert check_store(again) == []
    ended(old, clock, timed)
    clock.advance(40_000)
    tick_schedules(again)
    assert ticks_of(again, "nightly") == ["2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"]
    assert again.schedules.get("nightly").next_at == datetime(2023, 11, 15, 12, 30, tzinfo=UTC)
    again.close()


def test_a_pause_ends_the_wait_and_its_tick(timed, clock, slow):
    old = slow("skip")
    clock.advance(3_600_000)
    tick_schedules(timed)
    timed.schedules.pause("nightly", by="ada")
    assert check_store(timed) == []
    ended(old, clock, timed)
    clock.advance(10_000)
    tick_schedules(timed)
    assert ticks_of(timed, "nightly") == ["2023-11-14T23:00:00Z"]


def wall(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
