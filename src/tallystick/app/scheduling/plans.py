"""What a schedule is planned to do, checked; and what people see of one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import msgspec

from tallystick.app.api.retrying import Duration
from tallystick.app.api.submittable import Submittable
from tallystick.app.scheduling.submit_options import refuse_unscheduled
from tallystick.core.durations import duration_ms, written
from tallystick.core.schedules.rows import Missed, Overlap, Schedule, SchedulePlan
from tallystick.core.schedules.timetable import following, read, shown, timetable_of, words, write
from tallystick.defaults import TENANT
from tallystick.errors import BadSchedule
from tallystick.worker.clockwork import JobOptions

When = str | timedelta | datetime
MissedTicks = Literal["skip", "last", "all"]
Overlapping = Literal["allow", "skip", "cancel_old"]

# The parameter of a workflow that gets the instant of its tick, if it has one of this name.
SCHEDULED_AT: Final = "scheduled_at"
JITTER_MS_MAX: Final = 3_600_000


class ScheduleView(NamedTuple):
    """What is known of a schedule. `next_at` is the next tick; None when there is none, or it is paused."""

    id: str
    workflow: str
    when: str
    missed: str
    overlap: str
    declared: bool
    paused_by: str | None
    hold_reason: str | None
    next_at: datetime | None
    last_at: datetime | None
    last_job: str | None
    jitter: str = "0s"
    tenant: str = TENANT


def plan_of(
    workflow: Submittable[..., Any],
    when: When,
    tz: str,
    missed: str,
    overlap: str,
    jitter: Duration,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> SchedulePlan:
    """Return what is decided about a schedule, checked."""
    jitter_ms = checked_jitter(missed, overlap, jitter)
    takes_instant = SCHEDULED_AT in inspect.signature(workflow.__wrapped__).parameters
    instant = {SCHEDULED_AT: datetime.fromtimestamp(0, UTC)} if takes_instant else {}
    refuse_unscheduled(workflow.options)
    submission = workflow.submission(tuple(args), {**kwargs, **instant})
    options = JobOptions(
        submission.queue,
        submission.priority,
        submission.attempts_max,
        submission.deadline_ms,
        submission.tags,
        submission.delay_ms,
        submission.limit_key,
    )
    return SchedulePlan(
        submission.tenant_id,
        workflow.name,
        workflow.version,
        submission.payload,
        SCHEDULED_AT if takes_instant else None,
        msgspec.json.encode(options).decode(),
        write(timetable_of(when, tz)),
        missed,
        overlap,
        jitter_ms,
    )


def checked_jitter(missed: str, overlap: str, jitter: Duration) -> int:
    """Return the jitter in milliseconds, or refuse an option that is none."""
    jitter_ms = duration_ms(jitter)
    if jitter_ms > JITTER_MS_MAX:
        raise BadSchedule("the jitter of a schedule is at most an hour")
    for value, kind in ((missed, Missed), (overlap, Overlap)):
        if value not in list(kind):
            known = ", ".join(kind)
            raise BadSchedule(f"{kind.__name__.lower()}={value!r}: it is one of {known}")
    return jitter_ms


def check_comes(plan: SchedulePlan, now: int) -> None:
    """Refuse one instant that has passed: it would never become a job."""
    table = read(plan.timetable)
    if following(table, now) is None:
        raise BadSchedule(
            f"it never comes {words(table)}, because that has passed: name an instant that is to come, "
            "or submit the workflow now"
        )


def view_of(row: Schedule) -> ScheduleView:
    """Return what people see of a schedule."""
    waits = row.paused_by is not None or row.hold_reason is not None
    return ScheduleView(
        row.schedule_id,
        row.handler,
        words(read(row.timetable)),
        row.missed,
        row.overlap,
        bool(row.declared),
        row.paused_by,
        row.hold_reason,
        None if waits else _moment(row.next_at),
        _moment(row.last_at),
        row.last_job_id,
        written(row.jitter_ms),
        row.tenant_id,
    )


def _moment(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(shown(at))
