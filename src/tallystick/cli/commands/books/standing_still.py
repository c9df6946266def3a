"""What stands still in a store though nothing is broken: paused queues, schedules that tick no more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tallystick.cli.render.wording import instant
from tallystick.core.limits import PAGE_ROWS_MAX
from tallystick.core.schedules.rows import Schedule
from tallystick.core.schedules.verbs import never_ran
from tallystick.store.api import Queues, Schedules, Store

_SHOWN: Final = 100


def declared_schedules(app: str | None) -> frozenset[str] | None:
    """Return the schedules that a program declares; None if no program was named."""
    if app is None:
        return None
    from tallystick.cli.loading import load_app

    return load_app(app).app.declared_schedules


def held_schedules(store: Store) -> tuple[str, ...]:
    """Return a sentence for each schedule that ticks no more until a person has decided."""
    return tuple(
        f"the schedule {row.schedule_id} is held: {row.hold_reason}; tally schedules resume {row.schedule_id}"
        for row in islice((row for row in _schedules(store) if row.hold_reason is not None), _SHOWN)
    )


def _schedules(store: Store) -> Iterator[Schedule]:
    after = ""
    while rows := store.schedules(after=after, limit=PAGE_ROWS_MAX) if isinstance(store, Schedules) else ():
        after = rows[-1].schedule_id
        yield from rows


def standing_still(store: Store, declared: frozenset[str] | None) -> tuple[str, ...]:
    """Return a sentence for each queue that is paused and each schedule that is over or not declared."""
    found: list[str] = []
    for queue in store.queues(after="", limit=_SHOWN) if isinstance(store, Queues) else ():
        if queue.paused_by is not None:
            since = instant(queue.paused_at)
            found.append(
                f"the queue {queue.queue} has been paused by {queue.paused_by} since {since}; "
                f"tally queues resume {queue.queue} lets its jobs go on"
            )
    for schedule in islice(_schedules(store), _SHOWN):
        name = schedule.schedule_id
        if (passed := never_ran(schedule)) is not None:
            found.append(
                f"the schedule {name} never ran: its instant {passed} had passed; "
                "declare one that is to come, or remove it"
            )
        if declared is not None and schedule.declared and name not in declared:
            found.append(
                f"the schedule {name} is no longer declared, and goes on; "
                f"tally schedules remove {name} ends it"
            )
    return tuple(found)
