"""Schedules on SQL stores: a row in the place of the one that was seen, and what is read of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tallystick.core.schedules.rows import Schedule
from tallystick.errors import ScheduleChanged
from tallystick.store.api import DropSchedule, SaveSchedule
from tallystick.store.writing import OpenTransaction


def write_schedule(batch: OpenTransaction, request: SaveSchedule | DropSchedule) -> None:
    """Remove the row that was seen, and put what is to be kept in its place; or refuse the bundle."""
    schedule = request.schedule if isinstance(request, SaveSchedule) else None
    schedule_id = request.schedule_id if isinstance(request, DropSchedule) else request.schedule.schedule_id
    changed = _changed(schedule_id)
    if request.seen is not None:
        batch.expect("drop_schedule", (schedule_id, request.seen), changed)
    if schedule is not None:
        batch.expect("insert_schedule", schedule, changed)


def _changed(schedule_id: str) -> ScheduleChanged:
    return ScheduleChanged(f"the schedule {schedule_id} was changed meanwhile", schedule_id=schedule_id)


class ScheduleReads(ABC):
    """What workers and people look for; a change names the revision that was seen."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def schedules(self, *, after: str, limit: int) -> list[Schedule]:
        """Return a page of the schedules by their names; `after` is the last one of the page before."""
        return [Schedule._make(row) for row in self.rows("schedules", (after, limit))]

    def schedule(self, schedule_id: str) -> Schedule | None:
        """Return one schedule."""
        return next((Schedule._make(row) for row in self.rows("schedule", (schedule_id,))), None)

    def due_schedules(self, limit: int) -> tuple[int, list[Schedule]]:
        """Return the time by the store's clock, and the schedules that are due then, the longest first."""
        now = self.now()
        return now, [Schedule._make(row) for row in self.rows("due_schedules", (now, limit))]

    def next_tick(self) -> int | None:
        """Return how many milliseconds from now the next schedule is due, if any is."""
        ((due_at,),) = self.rows("next_tick")
        return None if due_at is None else max(0, due_at - self.now())
