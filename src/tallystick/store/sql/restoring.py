"""Books that were restored from a copy: what they say of unfinished jobs may be old, so a person looks first.

After the copy was made, the original went on: steps ran, effects happened, signals came. So nothing that is
unfinished goes on by itself. Each job is held as RESTORED, and each schedule paused, until a person resumes
them. No directive of a held job goes out; one that was out when the copy was made is guarded by the lease
that a report must name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tallystick.core.schedules.verbs import paused
from tallystick.core.verbs.holds import Held, Hold
from tallystick.errors import BadInput, ScheduleChanged
from tallystick.store.api import Bundle, HoldJob, Outcome, SaveSchedule, Schedules, Store

WHY: Final = (
    "these books were restored from a copy, and what happened after it was made is not in them; look, then "
    "tally resume --restored"
)
BY: Final = "restored from a copy"

_PAGE: Final = 500


class Restored(NamedTuple):
    """How many jobs are held, and how many schedules paused, because a store was restored."""

    jobs: int
    schedules: int


def hold_restored(store: Store) -> Restored:
    """Hold every unfinished job and pause every schedule; return how many of each stand still by this.

    A store that cannot hold jobs refuses.
    """
    if not isinstance(store, Schedules):
        raise BadInput(
            f"{store.url} keeps protocol jobs alone, and holds none of them after a restoration; "
            "tally restored is for SQLite and PostgreSQL",
            url=store.url,
        )
    count, inspection, after = 0, store.inspect(), ""
    while job_ids := inspection.unfinished(after=after, limit=_PAGE):
        after = job_ids[-1]
        for outcome in store.apply([(HoldJob(job_id, Hold.RESTORED, WHY),) for job_id in job_ids]):
            if isinstance(outcome, BaseException):
                raise outcome
            count += outcome in (Held.HELD, Held.ASKED)
    return Restored(count, _pause_all(store, store.apply))


def _pause_all(store: Schedules, apply: Callable[[Sequence[Bundle]], Sequence[Outcome]]) -> int:
    count, after = 0, ""
    while rows := store.schedules(after=after, limit=_PAGE):
        after = rows[-1].schedule_id
        changes: list[Bundle] = [
            (SaveSchedule(paused(row, BY), row.rev),) for row in rows if row.paused_by is None
        ]
        for outcome in apply(changes) if changes else ():
            # A person was faster, and has seen it.
            if isinstance(outcome, BaseException) and not isinstance(outcome, ScheduleChanged):
                raise outcome
            count += outcome is None
    return count
