"""What operators watch: the workers that live, what they ended in each minute, and what waits in the queues.

Nothing is decided by these rows. Each worker writes its own, now and then, never for a single job.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

REPORT_MS: Final = 20_000
"""How often a worker says that it lives."""

COUNT_MS: Final = 60_000
"""How often it writes what it has ended since."""

SILENT_MS: Final = 3 * REPORT_MS
"""A worker that has said nothing for so long is not counted among the living."""

FORGET_WORKER_MS: Final = 24 * 60 * 60 * 1000
"""How long one that has died is still shown."""

KEEP_COUNTS_MS: Final = 8 * 24 * 60 * 60 * 1000
"""How long the counts of ended jobs are kept."""

DEPTH_MAX: Final = 100_000
"""A queue is counted up to here, so that the answer comes as soon from a queue of millions."""


class WorkerRow(NamedTuple):
    """A worker as it was when it last reported; its queues are a JSON list, `failing` is a JSON object."""

    owner: str
    host: str
    pid: int
    version: str
    queues: str
    slots: int
    running: int
    started_at: int
    heard_at: int
    failing: str

    @property
    def failing_roles(self) -> dict[str, str]:
        """Return the roles whose last turn failed, each with its error."""
        return msgspec.json.decode(self.failing, type=dict[str, str])

    def is_live(self, now: int) -> bool:
        """Tell whether it has reported lately."""
        return now - self.heard_at < SILENT_MS


class RunningJob(NamedTuple):
    """A job that a worker has, and since when."""

    job_id: str
    handler: str
    queue: str
    owner: str
    started_at: int


class EndedCount(NamedTuple):
    """How many jobs came to this end in a minute; the minute is counted from 1970."""

    minute: int
    state: str
    ended: int


class ReportWorker(NamedTuple):
    """A worker lives, and has ended so many jobs since it last said so; the outcome is None."""

    owner: str
    host: str
    pid: int
    version: str
    queues: str
    slots: int
    running: int
    failing: str = "{}"
    ended: tuple[tuple[str, int], ...] = ()


class LeaveWorker(NamedTuple):
    """A worker has stopped as it should, and is not shown any more; the outcome is None."""

    owner: str


class QueueDepth(NamedTuple):
    """How many jobs of a queue are due and wait, counted up to a limit, and since when the first does."""

    queue: str
    depth: int
    oldest_at: int | None


class Backlog(NamedTuple):
    """What stands before the workers and the relays, at one instant of the store's clock."""

    now: int
    queues: list[QueueDepth]
    held: dict[str, int]
    outbox: int
    outbox_at: int | None
    tick_at: int | None
    # Schedules that tick no more until a person has decided.
    schedules_held: int = 0
