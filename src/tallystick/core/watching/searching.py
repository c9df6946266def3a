"""What a person looks for among jobs: any filter, in pages of a bounded cost.

Filters that have no index look at a bounded window of jobs, the newest first, and say where the window ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tallystick.core.values import JobRow

WINDOW_JOBS: Final = 10_000
"""How many jobs one page of a search looks at, at most."""


COUNT_MAX: Final = 10_000
"""How far pages count; beyond it they say `10,000+`."""


class JobSearch(NamedTuple):
    """What the jobs have in common that a person looks for; None and empty are no condition."""

    tenant_id: str
    states: Sequence[str] = ()
    workflow: str | None = None
    queue: str | None = None
    tag: str | None = None
    key: str | None = None
    parent: str | None = None
    is_held: bool = False
    since: int | None = None
    until: int | None = None
    # A part of the message of its error; small and capital letters are the same.
    error: str | None = None


class FoundJobs(NamedTuple):
    """Jobs, newest first; `reached` is the last job that was looked at, if there are others behind it."""

    rows: list[JobRow]
    reached: str | None


class CountedJobs(NamedTuple):
    """How many jobs were found; `reached` as above."""

    number: int
    reached: str | None
