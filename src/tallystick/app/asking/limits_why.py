"""Why a job that is due is not claimed: its queue is paused, or its limits let no other begin."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.app.asking.sentence import clock_text
from tallystick.core.queues.admitting import Slot
from tallystick.core.queues.rows import Queue
from tallystick.store.api import JobRow


def is_due(row: JobRow, now: int) -> bool:
    """Tell whether a job waits for nothing but a claim."""
    return row.completed_at is None and row.hold is None and row.ready_at is not None and row.ready_at <= now


def limit_sentence(row: JobRow, queue: Queue, slots: Sequence[Slot]) -> str:
    """Say what the queue of a due job has to do with it; nothing if, as far as is seen, it may begin."""
    name = queue.queue
    if queue.paused_by is not None:
        return f"; the queue {name} has been paused by {queue.paused_by} since {clock_text(queue.paused_at)}"
    limits = queue.limits
    if limits.concurrency is not None and len(slots) >= limits.concurrency:
        run = "job of the queue {} runs" if len(slots) == 1 else "jobs of the queue {} run"
        return f"; {len(slots)} {run.format(name)}, and it lets {limits.concurrency} run at once"
    of_key = sum(slot.limit_key == row.limit_key for slot in slots)
    if limits.per_key is not None and row.limit_key is not None and of_key >= limits.per_key:
        run = "runs" if of_key == 1 else "run"
        return (
            f"; {of_key} with the key {row.limit_key} {run}, and the queue lets {limits.per_key} run at once"
        )
    rates = [
        f"{rate} of the {what}"
        for rate, what in ((limits.rate, "queue"), (limits.key_rate, "key"))
        if rate is not None and row.attempt == 0
    ]
    return f"; it begins at the rate of {' and '.join(rates)}" if rates else ""
