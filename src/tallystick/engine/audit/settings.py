"""Checks that the settings of a store make sense: its schedules and API keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tallystick.core.audit.book import Finding
from tallystick.core.remote.keys import judge_key
from tallystick.core.schedules.judging import judge_last, judge_schedule, last_key
from tallystick.core.schedules.rows import Schedule
from tallystick.store.api import Schedules, Store

_PAGE: Final = 500


def check_settings(store: Store) -> Iterator[Finding]:
    """Give what is wrong with settings; a schedule that moved while it was read is read again."""
    for key in store.keys():  # noqa: SIM118 (a store is no dictionary)
        yield from (Finding("", "keys", f"the key {key.kid}: {words}") for words in judge_key(key))
    if not isinstance(store, Schedules):
        return
    after, more = "", True
    while more:
        page = store.schedules(after=after, limit=_PAGE)
        for row in page:
            name = f"the schedule {row.schedule_id}"
            yield from (Finding("", "schedules", f"{name}: {words}") for words in _schedule(store, row))
        more = len(page) == _PAGE
        after = page[-1].schedule_id if page else after


def _schedule(store: Store, row: Schedule) -> list[str]:
    assert isinstance(store, Schedules), "asked above"
    while found := [*judge_schedule(row), *_last(store, row)]:
        now = store.schedule(row.schedule_id)
        if now is None:
            return []
        if now == row:
            return found
        row = now
    return []


def _last(store: Store, row: Schedule) -> Iterator[str]:
    """Judge the last job, if it is there: it may have been removed, or the tick had a job already."""
    job = None if row.last_job_id is None else store.job(row.last_job_id)
    if job is not None:
        yield from judge_last(row, job)
    elif row.last_job_id is not None:
        removed = any(line.whole for line in store.inspect().removals_of(row.last_job_id))
        key = last_key(row)
        if not removed and (key is None or not store.is_reserved(row.tenant_id, "key", key)):
            yield f"its last job, {row.last_job_id}, is not there, and no removal is noted"
