"""What a schedule cannot be: it has no history, so only what follows from its row and its last job is judged.

People and programs change it without a fact. A row that no rule could have written is found; one that was
turned into another lawful one is not, and `core/audit/free_columns.py` says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tallystick.core.schedules.rows import Schedule
from tallystick.core.schedules.timetable import following, read, write
from tallystick.core.schedules.verbs import key_of, moved
from tallystick.core.values import JobRow
from tallystick.errors import TallyError


def judge_schedule(row: Schedule) -> Iterator[str]:
    """Give what is wrong with a schedule by itself: its timetable says its ticks, and when they are due."""
    try:
        table = read(row.timetable)
        is_tick = row.next_at is None or following(table, row.next_at - 1) == row.next_at
        # One that waits may be of a timetable that was changed since.
        is_tick = is_tick or row.waits_since is not None
    except (msgspec.MsgspecError, TallyError, ValueError):
        yield "its timetable cannot be read"
        return
    if write(table) != row.timetable:
        yield "its timetable is not as it was written"
    if not is_tick:
        yield f"its next tick, {row.next_at}, is none of its timetable"
    elif row.waits_since is not None:
        if None in (row.next_at, row.due_at) or not _waits(row):
            yield "its tick waits for the end of a job, and its row says otherwise"
    elif moved(row, row.next_at).due_at != row.due_at:
        yield f"it is due at {row.due_at}, and its next tick says otherwise"
    if (row.last_at is None) != (row.last_job_id is None):
        yield "its last tick and the job of that do not go together"


def _waits(row: Schedule) -> bool:
    """Tell whether a tick waits as one can: since it was due, and looked for again later."""
    since = row.waits_since or 0
    return (row.next_at or 0) <= since < (row.due_at or 0)


def judge_last(row: Schedule, job: JobRow) -> Iterator[str]:
    """Give what is wrong with the job that a schedule names as its last."""
    if (job.tenant_id, job.idempotency_key) != (row.tenant_id, last_key(row)):
        yield f"its last job, {job.job_id}, is not that of its last tick"


def last_key(row: Schedule) -> str | None:
    """Return the key of the job of the last tick."""
    return None if row.last_at is None else key_of(row.schedule_id, row.last_at)
