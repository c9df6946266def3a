"""A sentence about a job, and what a program may ask of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple


class Why(str):  # noqa: SLOT000 (it has attributes, and is made for people)
    """A sentence, and what a program may ask of it.

    `since` and `until` are the instants that it names, `actions` are commands that a person can give, and
    `child` says the same about a child that the job waits for.
    """

    since: datetime | None
    until: datetime | None
    actions: tuple[str, ...]
    child: Why | None

    @classmethod
    def of(cls, told: Sentence, child: Why | None = None) -> Why:
        """Return the sentence with what belongs to it."""
        why = cls(told.text)
        why.since, why.until, why.actions, why.child = (
            when(told.since),
            when(told.until),
            told.actions,
            child,
        )
        return why

    def going_on(self, more: str) -> Why:
        """Return the sentence with an end of its own."""
        longer = Why(self + more)
        longer.since, longer.until, longer.actions, longer.child = (
            self.since,
            self.until,
            self.actions,
            self.child,
        )
        return longer


class Sentence(NamedTuple):
    """A sentence before it is a `Why`: instants are milliseconds."""

    text: str
    since: int | None = None
    until: int | None = None
    actions: tuple[str, ...] = ()


def clock_text(ms: int | None) -> str:
    """Return an instant as people read it."""
    return "?" if ms is None else f"{datetime.fromtimestamp(ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S}Z"


def when(ms: int | None) -> datetime | None:
    """Return an instant as programs read it."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, tz=UTC)
