"""What stands still in a store though nothing is broken: paused queues, schedules that tick no more."""

from __future__ import annotations

from typing import Final

from tallystick.cli.render.wording import instant
from tallystick.store.api import Queues, Schedules, Store

_SHOWN: Final = 100


def declared_schedules(app: str | None) -> frozenset[str] | None:
    """Return the schedules that a program declares; None if no program was named."""
    if app is None:
        return None
    from tallystick.cli.loading import load_app

    return load_app(app).app.declared_schedules


def standing_still(store: Store, declared: frozenset[str] | None) -> tuple[str, ...]:
    """Return a sentence for each queue that is paused and each schedule that is held or not declared."""
    found: list[str] = []
    for queue in store.queues(after="", limit=_SHOWN) if isinstance(store, Queues) else ():
        if queue.paused_by is not None:
            since = instant(queue.paused_at)
            found.append(
                f"the queue {queue.queue} has been paused by {queue.paused_by} since {since}; "
                f"tally queues resume {queue.queue} lets its jobs go on"
            )
    for schedule in store.schedules(after="", limit=_SHOWN) if isinstance(store, Schedules) else ():
        name = schedule.schedule_id
        if schedule.hold_reason is not None:
            found.append(
                f"the schedule {name} is held: {schedule.hold_reason}; tally schedules resume {name}"
            )
        if declared is not None and schedule.declared and name not in declared:
            found.append(
                f"the schedule {name} is no longer declared, and goes on; "
                f"tally schedules remove {name} ends it"
            )
    return tuple(found)
