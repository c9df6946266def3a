"""Timetables and what becomes of ticks; how they pass changes of the clocks is in `test_daylight.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.schedules.rows import MISSED_MAX, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import (
    Cron,
    Every,
    Once,
    following,
    preceding,
    read,
    timetable_of,
    write,
)
from tallystick.core.schedules.verbs import (
    Fire,
    HoldSchedule,
    NotDue,
    PassBy,
    decide,
    paused,
    planned,
    resumed,
    ticked,
)
from tallystick.errors import BadSchedule

BERLIN = "Europe/Berlin"
MINUTE, HOUR = 60_000, 3_600_000


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


tables = st.one_of(
    st.sampled_from(
        [Cron("*/7 * * * *", BERLIN), Cron("30 2 * * 1-5", "UTC"), Cron("0 0 1 * *", "Asia/Tokyo")]
    ),
    st.integers(1_000, 10**9).map(Every),
)


@given(tables, st.integers(1_600_000_000_000, 1_900_000_000_000))
def test_what_follows_what_precedes_is_the_next_one(table, instant):
    after = following(table, instant)
    assert after > instant
    before = preceding(table, after)
    assert before <= instant
    assert following(table, before) == after
    assert read(write(table)) == table


def test_timetables_as_people_write_them():
    assert timetable_of("0 3 * * *", BERLIN) == Cron("0 3 * * *", BERLIN)
    assert timetable_of("every 15m") == timetable_of(timedelta(minutes=15)) == Every(15 * MINUTE)
    assert timetable_of(datetime(2027, 1, 1, tzinfo=UTC)) == timetable_of("2027-01-01T00:00:00Z")
    assert timetable_of("2027-01-01T00:00:00Z") == Once(at("2027-01-01T00:00:00+00:00"))


@pytest.mark.parametrize(
    ("when", "tz", "why"),
    [
        ("61 * * * *", "UTC", "five fields"),
        ("0 3 * *", "UTC", "five fields"),
        ("", "UTC", "five fields"),
        ("every 10ms", "UTC", "one second"),
        ("0 3 * * *", "Europe/Atlantis", "not a time zone"),
        ("0 3 * * *", "../../etc/passwd", "not a time zone"),
        (datetime(2027, 1, 1), "UTC", "no time zone"),
        ("2027-13-01T00:00:00Z", "UTC", "not an instant"),
        (7, "UTC", "not a timetable"),
        ("*/10 * * * * *", "UTC", "has six fields: write five"),
    ],
)
def test_what_is_no_timetable_is_refused_with_advice(when, tz, why):
    with pytest.raises(BadSchedule, match=why):
        timetable_of(when, tz)


def row(when: str = "every 1m", *, missed: str = "last", jitter_ms: int = 0, now: int = 0) -> Schedule:
    plan = SchedulePlan(
        "default", "nightly", "", "{}", None, "{}", write(timetable_of(when)), missed, "allow", jitter_ms
    )
    made = planned(None, plan, now, schedule_id="nightly", declared=True)
    assert made is not None
    return made


def test_a_tick_is_due_at_its_instant_and_a_late_one_for_a_minute_more():
    schedule = row()
    assert schedule.next_at == schedule.due_at == MINUTE
    assert decide(schedule, MINUTE - 1) == NotDue()
    assert decide(schedule, MINUTE) == Fire((MINUTE,))
    assert decide(schedule, 2 * MINUTE) == Fire((MINUTE,))


def test_missed_ticks_are_left_out():
    schedule = row(missed="skip")
    assert decide(schedule, 10 * HOUR + 1) == PassBy(10 * HOUR)
    # The tick of 10:00 is 30 s late, and in time.
    assert decide(schedule._replace(next_at=10 * HOUR, due_at=10 * HOUR), 10 * HOUR + 30_000) == Fire(
        (10 * HOUR,)
    )


def test_of_missed_ticks_the_last_is_made_up_for():
    hourly = row("every 1h", missed="last")
    assert decide(hourly, 10 * HOUR + 5 * MINUTE) == Fire((10 * HOUR,))
    behind = ticked(hourly, 10 * HOUR, "job")
    assert (behind.next_at, behind.last_at, behind.last_job_id) == (11 * HOUR, 10 * HOUR, "job")
    # The last one is not missed: it becomes a job when it is its turn, and no other does.
    assert decide(hourly, 10 * HOUR) == PassBy(10 * HOUR)


def test_all_missed_ticks_are_made_up_for_up_to_a_limit():
    schedule = row("every 1h", missed="all")
    assert decide(schedule, 3 * HOUR + 5 * MINUTE) == Fire((HOUR, 2 * HOUR, 3 * HOUR))
    verdict = decide(schedule, (MISSED_MAX + 1) * HOUR + 5 * MINUTE)
    assert isinstance(verdict, HoldSchedule)
    assert "backfill" in verdict.reason


def test_a_year_of_missed_seconds_is_decided_at_once():
    schedule = row("every 1s", missed="last")
    now = 365 * 24 * HOUR
    assert decide(schedule, now) == PassBy(now - MINUTE)
    assert decide(row("every 1s", missed="skip"), now) == PassBy(now - MINUTE)


def test_jitter_moves_when_a_tick_is_due_and_is_the_same_for_everybody():
    schedule = row("every 1h", jitter_ms=MINUTE)
    dues = {ticked(schedule, tick * HOUR, None).due_at - (tick + 1) * HOUR for tick in range(50)}
    assert min(dues) >= 0
    assert max(dues) <= MINUTE
    assert len(dues) > 25
    assert row("every 1h", jitter_ms=MINUTE).due_at == schedule.due_at
    assert schedule.next_at == HOUR


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_jitter_that_is_longer_than_the_time_between_two_ticks_loses_none_and_keeps_their_order(missed):
    schedule, fired = row("every 1m", missed=missed, jitter_ms=10 * MINUTE), []
    for now in range(0, HOUR, 1_000):
        verdict = decide(schedule, now)
        if isinstance(verdict, Fire):
            fired += verdict.ticks
            schedule = ticked(schedule, verdict.ticks[-1], "job")
        else:
            assert verdict == NotDue()
    assert fired == [n * MINUTE for n in range(1, len(fired) + 1)]
    assert len(fired) >= 58
    late = decide(schedule, 30 * HOUR + 1)
    assert (
        late
        == {
            "skip": PassBy(30 * HOUR - MINUTE),
            "last": PassBy(30 * HOUR - MINUTE),
            "all": HoldSchedule(late.reason if isinstance(late, HoldSchedule) else ""),
        }[missed]
    )


def test_a_pause_waits_and_its_ticks_are_not_made_up_for():
    schedule = paused(row(), "ada")
    assert schedule.due_at is None
    assert decide(schedule, 10 * HOUR) == NotDue()
    assert resumed(schedule, 10 * HOUR).due_at == 10 * HOUR + MINUTE


def test_a_new_timetable_begins_behind_now_and_the_same_plan_changes_nothing():
    schedule = row()
    same = planned(schedule, schedule.plan, 5, schedule_id="nightly", declared=True)
    assert same is None
    hourly = schedule.plan._replace(timetable=write(Every(HOUR)))
    changed = planned(schedule, hourly, 90_000, schedule_id="nightly", declared=True)
    assert changed is not None
    assert (changed.next_at, changed.rev) == (HOUR, schedule.rev + 1)
    held_back = planned(paused(schedule, "ada"), hourly, 5, schedule_id="nightly", declared=True)
    assert held_back is not None
    assert held_back.due_at is None
