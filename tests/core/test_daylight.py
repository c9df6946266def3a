"""Cron expressions where clocks are changed: ticks written by hand, and every tick of a plain count.

Clocks of 2026: Berlin goes from 02:00 to 03:00 on 29 March and from 03:00 back to 02:00 on 25 October; New
York from 02:00 back to 01:00 on 1 November; Cairo from 00:00 to 01:00 on 24 April and from 24:00 back to
23:00 on 29 October; Havana from 01:00 back to 00:00 on 1 November; Lord Howe, by half an hour, from 02:00
back to 01:30 on 5 April and from 02:00 to 02:30 on 4 October.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.schedules.timetable import Cron, following, preceding, shown

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
CAIRO, HAVANA = "Africa/Cairo", "America/Havana"
MINUTE = timedelta(minutes=1)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


# Zone, expression, an instant, and the ticks that come behind it.
DAYLIGHT = {
    "a time in the gap comes when the gap is over": (
        BERLIN,
        "30 2 * * *",
        "2026-03-28T12:00:00+01:00",
        ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
    ),
    "a time before the gap is as on every day": (
        BERLIN,
        "30 1 * * *",
        "2026-03-28T12:00:00+01:00",
        ["2026-03-29T01:30:00+01:00", "2026-03-30T01:30:00+02:00"],
    ),
    "each hour passes the gap by": (
        BERLIN,
        "0 * * * *",
        "2026-03-29T00:30:00+01:00",
        ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"],
    ),
    "a time that comes twice is taken once, the first time": (
        BERLIN,
        "30 2 * * *",
        "2026-10-24T12:00:00+02:00",
        ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
    ),
    "each half hour ticks through both": (
        BERLIN,
        "*/30 * * * *",
        "2026-10-25T01:45:00+02:00",
        [
            "2026-10-25T02:00:00+02:00",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T03:00:00+01:00",
        ],
    ),
    "each quarter of an hour that the clocks leave out does not come": (
        BERLIN,
        "*/15 2 * * *",
        "2026-03-28T02:40:00+01:00",
        ["2026-03-28T02:45:00+01:00", "2026-03-30T02:00:00+02:00"],
    ),
    "each quarter of an hour that comes twice is taken twice": (
        BERLIN,
        "*/15 2 * * *",
        "2026-10-25T00:00:00+02:00",
        [
            "2026-10-25T02:00:00+02:00",
            "2026-10-25T02:15:00+02:00",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:45:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T02:15:00+01:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T02:45:00+01:00",
            "2026-10-26T02:00:00+01:00",
        ],
    ),
    "the last day of a month": (
        BERLIN,
        "0 0 L * *",
        "2027-02-01T00:00:00+01:00",
        ["2027-02-28T00:00:00+01:00", "2027-03-31T00:00:00+02:00"],
    ),
    "behind a time that comes twice it is not taken again": (
        BERLIN,
        "30 2 * * *",
        "2026-10-25T02:04:30+01:00",
        ["2026-10-26T02:30:00+01:00", "2026-10-27T02:30:00+01:00"],
    ),
    "between the two times of a tick it is not taken again": (
        BERLIN,
        "30 2 * * *",
        "2026-10-25T02:50:00+02:00",
        ["2026-10-26T02:30:00+01:00"],
    ),
    "at the second time of a tick the next day comes": (
        BERLIN,
        "30 2 * * *",
        "2026-10-25T02:30:00+01:00",
        ["2026-10-26T02:30:00+01:00"],
    ),
    "fixed minutes of several hours are taken once each": (
        BERLIN,
        "15,45 1-3 * * *",
        "2026-10-25T02:10:00+02:00",
        [
            "2026-10-25T02:15:00+02:00",
            "2026-10-25T02:45:00+02:00",
            "2026-10-25T03:15:00+01:00",
            "2026-10-25T03:45:00+01:00",
        ],
    ),
    "in the hour that comes again fixed minutes wait for its end": (
        BERLIN,
        "15,45 1-3 * * *",
        "2026-10-25T02:20:00+01:00",
        ["2026-10-25T03:15:00+01:00"],
    ),
    "in the hour that comes again each quarter goes on": (
        BERLIN,
        "*/15 2 * * *",
        "2026-10-25T02:20:00+01:00",
        ["2026-10-25T02:30:00+01:00", "2026-10-25T02:45:00+01:00", "2026-10-26T02:00:00+01:00"],
    ),
    "two times in a gap are one tick, with the time at its end": (
        BERLIN,
        "15,45 2 * * *",
        "2026-03-28T12:00:00+01:00",
        ["2026-03-29T03:00:00+02:00", "2026-03-30T02:15:00+02:00"],
    ),
    "one o'clock in New York in its second hour": (
        NEW_YORK,
        "30 1,2 * * *",
        "2026-11-01T01:10:00-05:00",
        ["2026-11-01T02:30:00-05:00", "2026-11-02T01:30:00-05:00"],
    ),
    "each half hour in New York": (
        NEW_YORK,
        "*/30 1 * * *",
        "2026-11-01T01:10:00-04:00",
        [
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T01:00:00-05:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-02T01:00:00-05:00",
        ],
    ),
    "Lord Howe's half hour that comes twice": (
        LORD_HOWE,
        "45 1 * * *",
        "2026-04-04T12:00:00+11:00",
        ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
    ),
    "Lord Howe, from within the half hour that comes again": (
        LORD_HOWE,
        "15,45 1-3 * * *",
        "2026-04-05T01:34:00+10:30",
        ["2026-04-05T02:15:00+10:30", "2026-04-05T02:45:00+10:30"],
    ),
    "Lord Howe, where an hour begins behind half an hour that comes again": (
        LORD_HOWE,
        "*/15 2 * * *",
        "2026-04-05T01:10:00+11:00",
        [
            "2026-04-05T02:00:00+10:30",
            "2026-04-05T02:15:00+10:30",
            "2026-04-05T02:30:00+10:30",
            "2026-04-05T02:45:00+10:30",
            "2026-04-06T02:00:00+10:30",
        ],
    ),
    "Lord Howe, each other hour": (
        LORD_HOWE,
        "0 */2 * * *",
        "2026-04-05T00:30:00+11:00",
        ["2026-04-05T02:00:00+10:30", "2026-04-05T04:00:00+10:30"],
    ),
    "Lord Howe's gap of half an hour": (
        LORD_HOWE,
        "15 2 * * *",
        "2026-10-03T12:00:00+10:30",
        ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
    ),
    "a last hour of a day that comes twice": (
        CAIRO,
        "59 23 * * *",
        "2026-10-29T23:01:00+02:00",
        ["2026-10-30T23:59:00+02:00"],
    ),
    "a last hour of a day that comes twice, each half hour": (
        CAIRO,
        "*/30 23 * * *",
        "2026-10-29T23:10:00+03:00",
        ["2026-10-29T23:30:00+03:00", "2026-10-29T23:00:00+02:00", "2026-10-29T23:30:00+02:00"],
    ),
    "a midnight that the clocks leave out": (
        CAIRO,
        "0 0 * * *",
        "2026-04-23T12:00:00+02:00",
        ["2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"],
    ),
    "half hours of a midnight that the clocks leave out": (
        CAIRO,
        "*/30 0 * * *",
        "2026-04-23T12:00:00+02:00",
        ["2026-04-25T00:00:00+03:00", "2026-04-25T00:30:00+03:00"],
    ),
    "a midnight that comes twice": (
        HAVANA,
        "0 0 * * *",
        "2026-10-31T12:00:00-04:00",
        ["2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"],
    ),
    "a day that Apia did not have": (
        "Pacific/Apia",
        "0 9 * * *",
        "2011-12-29T08:00:00-10:00",
        ["2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"],
    ),
}


@pytest.mark.parametrize(("zone", "expression", "after", "ticks"), DAYLIGHT.values(), ids=DAYLIGHT)
def test_a_cron_expression_ticks_as_people_who_know_cron_expect(zone, expression, after, ticks):
    table, instant = Cron(expression, zone), at(after)
    for tick in ticks:
        instant = following(table, instant)
        assert shown(instant) == shown(at(tick))


@pytest.mark.parametrize(("zone", "expression", "after", "ticks"), DAYLIGHT.values(), ids=DAYLIGHT)
def test_the_way_back_has_the_same_ticks(zone, expression, after, ticks):
    table, instant = Cron(expression, zone), at(ticks[-1])
    for tick in reversed(ticks[:-1]):
        instant = preceding(table, instant)
        assert shown(instant) == shown(at(tick))
    before = preceding(table, instant)
    assert before <= at(after)
    assert following(table, before) == at(ticks[0])


class Fields(NamedTuple):
    """An expression, and what it means: minutes, hours, days of the week from Monday = 0."""

    expression: str
    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int] = frozenset(range(7))

    def match(self, time: datetime) -> bool:
        return time.minute in self.minutes and time.hour in self.hours and time.weekday() in self.weekdays


def _set(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


FIXED = [
    Fields("30 2 * * *", _set(30), _set(2)),
    Fields("0 0 * * *", _set(0), _set(0)),
    Fields("59 23 * * *", _set(59), _set(23)),
    Fields("15,45 1-3 * * *", _set(15, 45), _set(1, 2, 3)),
    Fields("30 2 * * 0", _set(30), _set(2), _set(6)),
    Fields("5 0-23 * * *", _set(5), frozenset(range(24))),
    Fields("0-50/10 1-2 * * *", frozenset(range(0, 60, 10)), _set(1, 2)),
]
STARRED = [
    Fields("*/15 2 * * *", _set(0, 15, 30, 45), _set(2)),
    Fields("0 */2 * * *", _set(0), frozenset(range(0, 24, 2))),
    Fields("45 * * * *", _set(45), frozenset(range(24))),
    Fields("*/30 23 * * *", _set(0, 30), _set(23)),
    Fields("*/20 0,1 * * 0", _set(0, 20, 40), _set(0, 1), _set(6)),
]
# A day before the clocks of a zone are changed; the count goes on for three days.
CHANGES = [
    (BERLIN, "2026-03-28T00:00:00Z"),
    (BERLIN, "2026-10-24T00:00:00Z"),
    (NEW_YORK, "2026-03-07T00:00:00Z"),
    (NEW_YORK, "2026-10-31T00:00:00Z"),
    (LORD_HOWE, "2026-04-03T12:00:00Z"),
    (LORD_HOWE, "2026-10-02T12:00:00Z"),
    (CAIRO, "2026-04-22T12:00:00Z"),
    (CAIRO, "2026-10-28T12:00:00Z"),
    (HAVANA, "2026-10-31T00:00:00Z"),
    ("America/Sao_Paulo", "2018-02-16T12:00:00Z"),
    ("America/Sao_Paulo", "2018-11-02T12:00:00Z"),
    ("Africa/Casablanca", "2026-02-14T00:00:00Z"),
    ("Africa/Casablanca", "2026-03-21T00:00:00Z"),
    ("Pacific/Apia", "2011-12-28T12:00:00Z"),
    ("Asia/Tokyo", "2026-03-28T00:00:00Z"),
]
COUNTED = timedelta(days=3)
# Ticks nearer to the ends of the count than this may have a neighbour outside it.
EDGE = timedelta(hours=6)


@cache
def counted(fields: Fields, zone: str, day: str) -> list[int]:
    """Return the ticks of some days: look at the clock each minute, and at what it has left out.

    Where the expression has fixed times the clock must not have shown this one before.
    """
    fixed, clock, ticks = fields in FIXED, ZoneInfo(zone), list[int]()
    start = datetime.fromisoformat(day)
    newest = start.astimezone(clock).replace(tzinfo=None)
    for minute in range(COUNTED // MINUTE):
        now = start + MINUTE * minute
        time = now.astimezone(clock).replace(tzinfo=None, fold=0)
        seen = [newest + MINUTE * n for n in range(1, (time - newest) // MINUTE + 1)] if fixed else [time]
        if any(fields.match(one) for one in seen):
            ticks.append(round(now.timestamp() * 1000))
        newest = max(newest, time)
    return ticks


@pytest.mark.parametrize(("zone", "day"), CHANGES, ids=lambda value: value)
@pytest.mark.parametrize("fields", FIXED + STARRED, ids=lambda fields: fields.expression)
def test_no_tick_is_left_out_or_doubled(fields, zone, day):
    """From a tick to the next, both ways, is what a person gets who looks at the clock each minute."""
    ticks, table = counted(fields, zone, day), Cron(fields.expression, zone)
    for before, after in pairwise(ticks):
        assert shown(following(table, before)) == shown(after)
        assert shown(preceding(table, after)) == shown(before)


@given(
    st.sampled_from(FIXED + STARRED),
    st.sampled_from(CHANGES),
    st.integers(0, (COUNTED - 2 * EDGE) // timedelta(milliseconds=1)),
)
def test_from_any_instant_the_nearest_ticks_are_found(fields, change, behind):
    zone, day = change
    table, instant = Cron(fields.expression, zone), at(day) + EDGE // timedelta(milliseconds=1) + behind
    after, before = following(table, instant), preceding(table, instant + 1)
    assert before <= instant < after
    assert following(table, before) == after
    assert preceding(table, after) == before
    ticks = counted(fields, zone, day)
    assert [tick for tick in ticks if tick > instant][:1] in ([], [after])
    assert [tick for tick in ticks if tick <= instant][-1:] in ([], [before])
