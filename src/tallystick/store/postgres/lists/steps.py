"""Inline steps written as one list in one statement, each under its own fence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tallystick.store.api import Outcome, RecordStep
from tallystick.store.sql.shapes import recorded

if TYPE_CHECKING:
    from tallystick.store.postgres.writer import PostgresBatch


def send_steps(writing: PostgresBatch, steps: Sequence[RecordStep]) -> Callable[[], list[Outcome]]:
    """Send steps and return how to read which of them were accepted."""
    links = [writing.placed_step(step) for step in steps]
    # Flushes of several processes lock in one order: that of the jobs.
    order = sorted(range(len(steps)), key=[step.fence.job_id for step in steps].__getitem__)
    rows = [(steps[index].fence, recorded(steps[index]), links[index]) for index in order]
    cursor = writing.ask("insert_steps", rows, writing.times.epoch, writing.times.lease)

    def answer() -> list[Outcome]:
        written = {order[place - 1] + 1 for (place,) in cursor.fetchall()}
        places = [[(step.chain, link)] for step, link in zip(steps, links, strict=True)]
        return writing.accepted(steps, places, written)

    return answer
