"""What becomes of a schedule: pure decisions, each a new row in the place of the one that was seen.

Ticks are nominal instants. Jitter moves when a tick is due, never which tick it is, and follows from its
name and instant, so every process agrees on it. No tick is due later than the instant of the next one: ticks
keep their order, however long the jitter.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from tallystick.core.schedules.rows import MISSED_MAX, MISSED_MS, Missed, Overlap, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import Once, Timetable, following, preceding, read, shown

_LOOK_MS_MIN: Final = 500
_LOOK_MS_MAX: Final = 10_000


class NotDue(NamedTuple):
    """There is nothing to do now."""


class Fire(NamedTuple):
    """These ticks become jobs, in this order."""

    ticks: tuple[int, ...]


class PassBy(NamedTuple):
    """Ticks were missed that are not wanted any more; the next one is `to`."""

    to: int | None


class HoldSchedule(NamedTuple):
    """The schedule is held, until a person has decided."""

    reason: str


Verdict: TypeAlias = NotDue | Fire | PassBy | HoldSchedule


def decide(schedule: Schedule, now: int) -> Verdict:
    """Decide what becomes of a schedule whose time may have come."""
    if schedule.due_at is None or schedule.next_at is None or schedule.due_at > now:
        return NotDue()
    if schedule.waits_since is not None:
        return Fire((_waited_for(schedule, schedule.next_at, now),))
    if now - schedule.due_at <= MISSED_MS:
        return Fire((schedule.next_at,))
    return _made_up(schedule, schedule.next_at, now)


def _made_up(schedule: Schedule, first: int, now: int) -> Verdict:
    """Decide what becomes of ticks that were missed, the first of them `first`."""
    table = read(schedule.timetable)
    match Missed(schedule.missed):
        case Missed.ALL:
            ticks = tuple(_due(schedule, table, now))
            if len(ticks) <= MISSED_MAX:
                return Fire(ticks)
            return HoldSchedule(
                f"more than {MISSED_MAX} ticks were missed since {shown(first)}: backfill those "
                "that are wanted, and resume the schedule"
            )
        case Missed.LAST:
            newest = _newest(schedule, table, now)
            if now - _due_at(schedule, newest) > MISSED_MS:
                return Fire((newest,))
            return PassBy(_first_in_time(schedule, table, now))
        case Missed.SKIP:
            return PassBy(_first_in_time(schedule, table, now))


def decide_overlap(schedule: Schedule, *, running: bool) -> Overlap:
    """Decide what becomes of the next tick, if the job of the one before is running or not."""
    return Overlap(schedule.overlap) if running else Overlap.ALLOW


def ticked(schedule: Schedule, tick: int, job_id: str | None) -> Schedule:
    """Return a schedule behind one of its ticks; without a job the tick was left out."""
    after = moved(schedule, following(read(schedule.timetable), tick))
    return after if job_id is None else after._replace(last_at=tick, last_job_id=job_id)


def waiting(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule whose tick waits for the end of the job before it.

    That it was in time is kept, however long the old job needs. The longer it waits, the less often it looks.
    """
    since = now if schedule.waits_since is None else schedule.waits_since
    rest = min(max((now - since) // 4, _LOOK_MS_MIN), _LOOK_MS_MAX)
    return schedule._replace(waits_since=since, due_at=now + rest, rev=schedule.rev + 1)


def moved(schedule: Schedule, to: int | None) -> Schedule:
    """Return a schedule whose next tick is another one; none waits any more."""
    still = schedule._replace(next_at=to, waits_since=None, rev=schedule.rev + 1)
    waits = schedule.paused_by is not None or schedule.hold_reason is not None
    return still._replace(due_at=None if waits or to is None else _due_at(schedule, to))


def held(schedule: Schedule, reason: str) -> Schedule:
    """Return a schedule that is held."""
    return moved(schedule._replace(hold_reason=reason), schedule.next_at)


def paused(schedule: Schedule, by: str) -> Schedule:
    """Return a schedule that a person has paused."""
    return moved(schedule._replace(paused_by=by), schedule.next_at)


def resumed(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule that goes on with the next tick behind now: those of the pause were not wanted."""
    free = schedule._replace(paused_by=None, hold_reason=None)
    return moved(free, following(read(schedule.timetable), now))


def planned(
    schedule: Schedule | None,
    plan: SchedulePlan,
    now: int,
    *,
    schedule_id: str,
    declared: bool,
) -> Schedule | None:
    """Return a schedule as it is planned now, or None if it is planned so already.

    A tick that is due under the plan before is to become a job first; behind it the new plan goes on. If it
    becomes that of another tenant, the last job is none of its own any more.
    """
    if schedule is None:
        row = Schedule(*(schedule_id, *plan, int(declared)), None, None, None, None, None, None, now, 0)
        return moved(row, following(read(plan.timetable), now))
    if schedule.plan == plan and schedule.declared == int(declared):
        return None
    changed = schedule._replace(**plan._asdict(), declared=int(declared))
    if plan.tenant_id != schedule.tenant_id:
        changed = changed._replace(last_at=None, last_job_id=None)
    if schedule.waits_since is not None:
        # Its tick was in time, and becomes a job also if the new timetable does not have it.
        return changed._replace(rev=schedule.rev + 1)
    if schedule.plan.timetable == plan.timetable:
        return moved(changed, schedule.next_at)
    return moved(changed, following(read(plan.timetable), now))


def hurried(schedule: Schedule, plan: SchedulePlan, now: int) -> Schedule:
    """Return a schedule as a change of its plan meets it: its tick is due, if only jitter keeps it back.

    The new plan begins behind now, or with another jitter, and would not know of it.
    """
    same = (schedule.timetable, schedule.jitter_ms) == (plan.timetable, plan.jitter_ms)
    if same or None in (schedule.next_at, schedule.due_at) or schedule.waits_since is not None:
        return schedule
    come = (schedule.next_at or 0) <= now < (schedule.due_at or 0)
    return schedule._replace(due_at=now) if come else schedule


def never_ran(schedule: Schedule) -> str | None:
    """Return the one instant of a schedule that has passed without a job, as it is shown; else None."""
    table = read(schedule.timetable)
    if not isinstance(table, Once) or schedule.next_at is not None or schedule.last_at is not None:
        return None
    return shown(table.at)


def key_of(schedule_id: str, tick: int) -> str:
    """Return the key of a tick's job: two processes that make it make one.

    >>> key_of("nightly", 0)
    'schedule:nightly:1970-01-01T00:00:00Z'
    """
    return f"schedule:{schedule_id}:{shown(tick)}"


def ticks_between(timetable: Timetable, since: int, until: int) -> Iterator[int]:
    """Return the ticks from an instant on, and before another."""
    tick = following(timetable, since - 1)
    while tick is not None and tick < until:
        yield tick
        tick = following(timetable, tick)


def _due(schedule: Schedule, table: Timetable, now: int) -> Iterator[int]:
    """Return the ticks that are due, one more than are made up for at the most."""
    tick = schedule.next_at
    for _ in range(MISSED_MAX + 1):
        if tick is None or _due_at(schedule, tick) > now:
            return
        yield tick
        tick = following(table, tick)


def _waited_for(schedule: Schedule, tick: int, now: int) -> int:
    """Return which tick becomes a job when the old one has ended: a later one if only the last is wanted."""
    table = read(schedule.timetable)
    is_planned = following(table, tick - 1) == tick
    return _newest(schedule, table, now) if is_planned and schedule.missed == Missed.LAST else tick


def _newest(schedule: Schedule, table: Timetable, now: int) -> int:
    """Return the last tick that is due."""
    tick = preceding(table, now + 1)
    while tick is not None and _due_at(schedule, tick) > now:
        tick = preceding(table, tick)
    assert tick is not None, "the one that is known to be due"
    return tick


def _first_in_time(schedule: Schedule, table: Timetable, now: int) -> int | None:
    """Return the first tick that is not missed; of those before a minute ago that can only be the last."""
    tick = preceding(table, now - MISSED_MS)
    while tick is not None and now - _due_at(schedule, tick) > MISSED_MS:
        tick = following(table, tick)
    return tick


def _due_at(schedule: Schedule, tick: int) -> int:
    """Return when a tick is due: at its instant, and a part of the jitter later, before the next one is."""
    if not schedule.jitter_ms:
        return tick
    after = following(read(schedule.timetable), tick)
    longest = schedule.jitter_ms if after is None else min(schedule.jitter_ms, after - tick)
    chance = zlib.crc32(f"{schedule.schedule_id}:{tick}".encode())
    return tick + chance % (longest + 1)
