"""Timetables: the instants at which a schedule ticks, in both directions, without remembering any.

Instants are milliseconds since 1970. A timetable in a row is JSON, so any process can go on with it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from tallystick.core.durations import duration_ms, written
from tallystick.core.schedules.cron_ticks import tick_after, tick_before, times_of_day
from tallystick.errors import BadSchedule

EVERY_MS_MIN: Final = 1_000
_EVERY: Final = "every "
# The parser would take the first one for seconds; rows of earlier versions may have them.
_FIELDS_WITH_SECONDS: Final = 6


class Cron(msgspec.Struct, frozen=True, tag="cron", tag_field="kind"):
    """A cron expression by the clocks of a time zone."""

    expression: str
    tz: str


class Every(msgspec.Struct, frozen=True, tag="every", tag_field="kind"):
    """An interval: its ticks are the whole multiples since 1970, so a restart moves none of them."""

    ms: int


class Once(msgspec.Struct, frozen=True, tag="once", tag_field="kind"):
    """One instant."""

    at: int


Timetable: TypeAlias = Cron | Every | Once

_decoder: Final[msgspec.json.Decoder[Timetable]] = msgspec.json.Decoder(Timetable)


def timetable_of(when: str | timedelta | datetime, tz: str = "UTC") -> Timetable:
    """Return the timetable that a person wrote: a cron expression, "every 15m", an interval or an instant.

    >>> timetable_of("every 15m")
    Every(ms=900000)
    """
    if isinstance(when, datetime):
        return Once(instant_ms(when))
    if isinstance(when, timedelta):
        return _every(duration_ms(when))
    if not isinstance(when, str):
        raise BadSchedule(f"{when!r} is not a timetable: write a cron expression, 'every 15m' or a datetime")
    text = when.strip()
    if text.startswith(_EVERY):
        return _every(duration_ms(text.removeprefix(_EVERY)))
    if "T" in text and text[:1].isdigit():
        return Once(instant_ms(read_instant(text)))
    if len(text.split()) == _FIELDS_WITH_SECONDS:
        raise BadSchedule(
            f"{text!r} has six fields: write five, minute hour day month weekday, or 'every 10s'"
        )
    return _checked(Cron(text, tz))


def read(text: str) -> Timetable:
    """Return the timetable of a row."""
    return _decoder.decode(text)


def write(timetable: Timetable) -> str:
    """Return a timetable as it is kept in a row."""
    return msgspec.json.encode(timetable).decode()


def words(timetable: Timetable) -> str:
    """Return a timetable as a person would write it."""
    match timetable:
        case Cron(expression, tz):
            return expression if tz == "UTC" else f"{expression} ({tz})"
        case Every(ms):
            return f"every {written(ms)}"
        case Once(at):
            return f"once at {shown(at)}"


def following(timetable: Timetable, after: int) -> int | None:
    """Return the first tick behind an instant, or None if there is none.

    >>> following(Every(60_000), 60_000), following(Once(5), 5)
    (120000, None)
    """
    match timetable:
        case Cron():
            return _ms(tick_after(timetable.expression, _zone(timetable.tz), _utc(after)))
        case Every(ms):
            return (after // ms + 1) * ms
        case Once(at):
            return at if at > after else None


def preceding(timetable: Timetable, before: int) -> int | None:
    """Return the last tick in front of an instant, or None if there is none.

    >>> preceding(Every(60_000), 60_000), preceding(Once(5), 6)
    (0, 5)
    """
    match timetable:
        case Cron():
            # The ticks are whole minutes or seconds, so a part of a second counts as a whole one.
            second = -(-before // 1000) * 1000
            return _ms(tick_before(timetable.expression, _zone(timetable.tz), _utc(second)))
        case Every(ms):
            return -(-before // ms) * ms - ms
        case Once(at):
            return at if at < before else None


def shown(at: int) -> str:
    """Return an instant as it stands in keys and on pages.

    >>> shown(0)
    '1970-01-01T00:00:00Z'
    """
    text = datetime.fromtimestamp(at / 1000, UTC).isoformat(
        timespec="milliseconds" if at % 1000 else "seconds"
    )
    return text.replace("+00:00", "Z")


def _every(ms: int) -> Every:
    if ms < EVERY_MS_MIN:
        raise BadSchedule("the shortest interval of a schedule is one second")
    return Every(ms)


def instant_ms(when: datetime) -> int:
    """Return an instant as milliseconds since 1970; it must know its time zone."""
    if when.tzinfo is None:
        raise BadSchedule(f"{when.isoformat()} has no time zone: give the datetime one, for example UTC")
    return round(when.timestamp() * 1000)


def delay_ms(when: str | float | timedelta | datetime, now: int) -> int:
    """Return how long it is from now to the end of a duration, or to an instant; none if that has passed.

    >>> delay_ms("2s", 0), delay_ms(datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 59_000)
    (2000, 1000)
    """
    return max(0, instant_ms(when) - now) if isinstance(when, datetime) else duration_ms(when)


def read_instant(text: str) -> datetime:
    """Return the instant that a person wrote."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise BadSchedule(f"{text!r} is not an instant: write it like 2027-01-31T03:00:00+01:00") from error


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadSchedule(f"{name!r} is not a time zone: write one like Europe/Berlin or UTC") from error


def _checked(cron: Cron) -> Cron:
    _zone(cron.tz)
    times_of_day(cron.expression, _utc(0), reverse=False)
    return cron


def _utc(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def _ms(tick: datetime | None) -> int | None:
    return None if tick is None else round(tick.timestamp()) * 1000
