"""The instants of a cron expression: its times of day by the clocks of a zone, also where those change.

`cronsim` reads an expression and lists its times of day; which instants these are is decided here. A time
that a clock shows twice has two instants, and one that it leaves out has none. As in Debian's cron:

- An expression whose minute and hour do not begin with a star ticks once for each of its times: at the
  first of two instants, and at the end of the gap where the clocks leave its time out.
- Every other expression ticks whenever the clock shows one of its times: twice, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tallystick.errors import BadSchedule

_FIELDS: Final = 5
_MINUTE: Final = timedelta(minutes=1)
_SECOND: Final = timedelta(seconds=1)
# The clocks of a zone are set back by less than this, and not twice within it.
_SET_BACK_MAX: Final = timedelta(hours=25)


def tick_after(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the first tick behind an instant of UTC, or None if there is none for fifty years."""
    here = _shown(after, zone)
    # A clock that is set back soon shows times again that it shows before now.
    again = _offset(after, zone) - _offset(after + _SET_BACK_MAX, zone)
    instants, best = _rule(expression), None
    for time in times_of_day(expression, here - max(again, timedelta(0)) - _SECOND, reverse=False):
        ticks = [tick for tick in instants(time, zone) if tick > after]
        best = min([*ticks, best] if best else ticks, default=None)
        if best is not None and time > here:
            break
    return best


def tick_before(expression: str, zone: ZoneInfo, before: datetime) -> datetime | None:
    """Return the last tick in front of an instant of UTC, a whole second; None as above."""
    here = _shown(before, zone)
    # A clock that was set back has shown times before that are still to come by it.
    again = _offset(before - _SET_BACK_MAX, zone) - _offset(before, zone)
    instants, best = _rule(expression), None
    for time in times_of_day(expression, here + max(again, timedelta(0)) + _SECOND, reverse=True):
        ticks = [tick for tick in instants(time, zone) if tick < before]
        best = max([*ticks, best] if best else ticks, default=None)
        if best is not None and time < here:
            break
    return best


def times_of_day(expression: str, start: datetime, *, reverse: bool) -> Iterator[datetime]:
    """Return the times of an expression behind or in front of one, without regard to what the clocks do."""
    try:
        return CronSim(expression, start, reverse=reverse)
    except CronSimError as error:
        raise BadSchedule(
            f"{expression!r} is not a cron expression ({error}): write five fields, "
            "minute hour day month weekday, or 'every 15m'"
        ) from error


def _rule(expression: str) -> Callable[[datetime, ZoneInfo], tuple[datetime, ...]]:
    """Return which instants the times of an expression are."""
    fields = expression.split()
    fixed = len(fields) == _FIELDS and not fields[0].startswith("*") and not fields[1].startswith("*")
    return _once if fixed else _whenever


def _once(time: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the first instant at which the clock shows a time, or the end of the gap that it is in."""
    while not (found := _whenever(time, zone)):
        time += _MINUTE
    return found[:1]


def _whenever(time: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the instants at which the clock shows a time: one, two or none, in their order."""
    first, second = (time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return (first,)
    return (first, second) if _shown(first, zone) == time else ()


def _shown(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return what the clock of a zone shows at an instant."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return _shown(instant, zone) - instant.replace(tzinfo=None)
