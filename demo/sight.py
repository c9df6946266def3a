"""What the database file says at one moment, read through a connection that cannot write.

The screen and the audit know nothing but this: no worker reports to them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import apsw

_JOBS = """
    SELECT j.job_id, j.payload ->> 'order', j.state, j.attempt,
           (SELECT count(*) FROM steps AS s WHERE s.job_id = j.job_id),
           live.lease_owner, live.lease_expires_at
      FROM jobs AS j
      LEFT JOIN attempts AS live
        ON live.job_id = j.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS')
     ORDER BY 2
"""
_ENDED = """
    SELECT a.job_id, a.attempt, a.lease_owner, a.finished_at
      FROM attempts AS a
     WHERE a.status = 'ABORTED' AND a.reason = 'EXPIRED'
     ORDER BY a.finished_at, a.job_id
"""
_TAKEN = """
    SELECT a.job_id, a.attempt, a.lease_owner, a.started_at,
           (SELECT count(*) FROM steps AS s WHERE s.job_id = a.job_id AND s.attempt < a.attempt)
      FROM attempts AS a
     WHERE a.attempt > 1
     ORDER BY a.started_at, a.job_id
"""
_DONE = "SELECT lease_owner, count(*) FROM attempts WHERE status = 'DONE' GROUP BY lease_owner"


class Job(NamedTuple):
    """One order as its row shows it; `owner` is the worker that holds its lease, if any does."""

    job_id: str
    order: int
    state: str
    attempt: int
    steps: int
    owner: str | None
    lease_ends_boot_ms: int | None

    @property
    def done(self) -> bool:
        """Tell whether the job has ended."""
        return self.state in {"SUCCEEDED", "FAILED_FINAL", "CANCELLED"}


class Reclaimed(NamedTuple):
    """An attempt whose lease ran out and was ended by a worker that is alive."""

    job_id: str
    attempt: int
    owner: str
    at_ms: int


class Takeover(NamedTuple):
    """A later attempt at a job: who took it, when, and how many recorded calls it does not repeat."""

    job_id: str
    attempt: int
    owner: str
    at_ms: int
    replayed: int


class Look(NamedTuple):
    """Everything that one look at the file showed."""

    seconds: float
    jobs: tuple[Job, ...]
    reclaimed: tuple[Reclaimed, ...]
    takeovers: tuple[Takeover, ...]
    done_by: dict[str, int]

    @property
    def done(self) -> int:
        """Return how many jobs have ended."""
        return sum(job.done for job in self.jobs)

    @property
    def running(self) -> int:
        """Return how many jobs somebody holds a lease on."""
        return sum(job.owner is not None for job in self.jobs)

    def held_by(self, owner: str) -> list[Job]:
        """Return the jobs whose lease this worker holds."""
        return [job for job in self.jobs if job.owner == owner]


class Sight:
    """Looks at one file."""

    def __init__(self, path: Path, started_ms: int) -> None:
        """Open the file for reading only; seconds count from `started_ms`."""
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(5_000)
        self._started_ms = started_ms

    def look(self) -> Look:
        """Read everything in one transaction."""
        with self._connection:
            look = Look(
                (wall_ms() - self._started_ms) / 1000,
                tuple(Job(*row) for row in self._connection.execute(_JOBS)),
                tuple(Reclaimed(*row) for row in self._connection.execute(_ENDED)),
                tuple(Takeover(*row) for row in self._connection.execute(_TAKEN)),
                dict(self._connection.execute(_DONE)),
            )
        return look  # noqa: RET504 (apsw's `with` could swallow an error as far as a type checker knows)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def wall_ms() -> int:
    """Return the clock on which facts are dated."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Return the clock on which leases end."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000
