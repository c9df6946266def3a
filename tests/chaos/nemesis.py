"""What a nemesis is, and those that need only processes: kill one, kill all, stop, set a clock wrong."""

from __future__ import annotations

import random
from typing import Protocol

from tests.chaos.crew import PROGRAMS, Crew
from tests.chaos.place import LEASE_SECONDS, SLOTS, Place
from tests.patience import let_time_pass

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
WRONG_BY = (-YEAR_MS, -HOUR_MS, HOUR_MS, YEAR_MS)


class Nemesis(Protocol):
    """One way to make life hard."""

    name: str

    def missing(self) -> str:
        """Say why it cannot be had here, or nothing if it can."""
        ...

    def strike(self, chance: random.Random) -> int:
        """Do harm, undo what has to be undone, and return how many faults really happened."""
        ...


class KillOne:
    """A process is gone."""

    name = "kill one"

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        self._crew.kill(self._crew.any(chance))
        return 1


class KillAll:
    """The machine is gone, but for its disk."""

    name = "kill all"

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        for member in self._crew.members:
            self._crew.kill(member)
        return 1


class Freeze:
    """A process stands still for longer than its leases last, and then goes on as if nothing had been."""

    name = "freeze"

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        member = self._crew.any(chance)
        self._crew.stop(member)
        let_time_pass(LEASE_SECONDS * chance.uniform(1.2, 1.8))
        self._crew.go_on(member)
        return 1


class WrongClock:
    """A wall clock is wrong by an hour or a year, or right again, until this strikes the next time.

    On one machine (SQLite) all processes have the same clock; on several (PostgreSQL) each has its own.
    """

    name = "clock"

    def __init__(self, place: Place, *, shared: bool) -> None:
        self._place = place
        self._shared = shared
        self._wrong_by = 0

    def missing(self) -> str:
        return ""

    def strike(self, chance: random.Random) -> int:
        slots = range(SLOTS) if self._shared else [chance.randrange(len(PROGRAMS))]
        self._wrong_by = chance.choice([by for by in (0, *WRONG_BY) if by != self._wrong_by])
        for slot in slots:
            self._place.set_clock(slot, self._wrong_by)
        return 1
