"""What a person looks for among jobs: any filter, in pages of a bounded cost.

A search walks the one index that knows most of what it asks for, the newest job first. It looks at a bounded
window of jobs there, and says where the window ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from tallystick.core.effects.rows import EffectRow
from tallystick.core.values import JobRow
from tallystick.errors import BadInput

WINDOW_JOBS: Final = 10_000
"""How many jobs one page of a search looks at, at most; of one for an error, that match the rest."""

ERROR_WINDOWS: Final = 3
"""For how many windows of jobs with an error such a page looks for jobs that match the other filters."""


COUNT_MAX: Final = 10_000
"""How far pages count; beyond it they say `10,000+`."""


_DIGITS_MAX: Final = 18


class SearchWalk(StrEnum):
    """Which jobs a search goes through, the newest first, by an index that holds only those."""

    KEY = "the job with this key"
    PARENT = "the children of this job"
    TAG = "jobs with this tag"
    HELD = "held jobs"
    DEAD = "dead letters"
    ERROR = "jobs with an error"
    ALL = "jobs"


class JobSearch(NamedTuple):
    """What the jobs have in common that a person looks for; None and empty are no condition."""

    # Jobs of all tenants if it is None: operators alone may look so.
    tenant_id: str | None
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
    # Jobs that have failed for good and were not retried.
    is_dead: bool = False

    @property
    def walk(self) -> SearchWalk:
        """Return which jobs are gone through; indexes of what is held or has failed are by tenant."""
        has_tenant = self.tenant_id is not None
        asked = {
            SearchWalk.TAG: self.tag is not None,
            SearchWalk.PARENT: self.parent is not None,
            SearchWalk.KEY: has_tenant and self.key is not None,
            SearchWalk.HELD: has_tenant and self.is_held,
            SearchWalk.DEAD: has_tenant and self.is_dead,
            SearchWalk.ERROR: has_tenant and self.error is not None,
        }
        return next((walk for walk, is_asked in asked.items() if is_asked), SearchWalk.ALL)

    @property
    def has_unindexed(self) -> bool:
        """Tell whether there is a filter that no index knows, besides the text of the error."""
        return bool(self.states or self.workflow or self.queue or self.since is not None)

    @property
    def is_walk_alone(self) -> bool:
        """Tell whether every job of the walk is meant; jobs with a tag, or all jobs, may be of any tenant."""
        if self.walk not in (SearchWalk.HELD, SearchWalk.DEAD):
            return False
        marks = self.is_held and self.is_dead
        return not (marks or self.has_unindexed or self.error is not None or self.until is not None)


class FoundJobs(NamedTuple):
    """Jobs, newest first; `reached` is the last job that was looked at, if there are others behind it."""

    rows: list[JobRow]
    reached: str | None


class CountedJobs(NamedTuple):
    """How many jobs were found; `reached` as above."""

    number: int
    reached: str | None


class EffectSearch(NamedTuple):
    """Which effects a person looks for: open ones by their keys, or those that ended, the last one first."""

    tenant_id: str
    ended: bool = False
    effect: str | None = None
    key: str | None = None
    job_id: str | None = None
    # Where it stands: its phase while it is open, then what came of it.
    stands: str | None = None

    @property
    def is_plain(self) -> bool:
        """Tell whether every effect of the tenant is meant that is open, or has ended."""
        return self[2:] == (None,) * 4

    def wants(self, row: EffectRow) -> bool:
        """Tell whether an effect is one of those."""
        asked = (self.effect, self.key, self.job_id, self.stands)
        has = (row.effect, row.key, row.job_id, row.outcome or row.phase)
        return (row.tenant_id, not row.is_open) == self[:2] and all(
            wanted in (None, value) for wanted, value in zip(asked, has, strict=True)
        )

    def place(self, row: EffectRow) -> str:
        """Return where an effect stands in the order of this search; a page begins behind such a place."""
        return f"{row.ended_at if self.ended else row.key} {row.exec_id}"

    def behind(self, place: str) -> tuple[str, str]:
        """Return the instant or key, and the name of the attempt, that a place is made of."""
        first, mark, exec_id = place.partition(" ")
        is_instant = first.isascii() and first.isdecimal() and len(first) <= _DIGITS_MAX
        if not mark or (self.ended and not is_instant):
            raise BadInput(f"after={place!r} is not valid; use the value from the previous page")
        return first, exec_id


class FoundEffects(NamedTuple):
    """A page of effects; `reached` is the place behind which the next one begins, if there is more."""

    rows: list[EffectRow]
    reached: str | None
