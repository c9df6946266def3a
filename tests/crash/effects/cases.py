"""What happens in a case: at which moment, to whom, and what else is by chance."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from typing import Final, NamedTuple

from tests.crash.sweep.plan import Chance


class Moment(StrEnum):
    """Where the fault falls."""

    BEFORE_INTENT = "before intent"
    AFTER_INTENT = "after intent"
    IN_CALL = "in the call"
    AFTER_CALL = "after the call"
    BEFORE_DONE = "before DONE"
    IN_PROBE = "in the probe"


class Fault(StrEnum):
    """What goes wrong."""

    KILLED = "worker killed"
    CUT = "provider cut"


class Case(NamedTuple):
    """One case: a job that charges once under a key of its own, and what is in its way."""

    number: int
    moment: Moment
    fault: Fault
    # A second job comes to the same key.
    rival: bool = False
    # The effect has no probe: a person looks at the provider's ledger and says so.
    asked: bool = False
    # The worker that recovers is killed too, at this moment.
    again: Moment | None = None

    @property
    def key(self) -> str:
        """Return the key of its charge."""
        return f"case-{self.number:07d}"

    def __str__(self) -> str:
        """Say the case in one line."""
        extras = [
            "with a rival" * self.rival,
            "without a probe" * self.asked,
            f"then killed {self.again}" if self.again else "",
        ]
        return ", ".join(filter(None, [f"{self.number}: {self.moment}, {self.fault}", *extras]))


_KILLS_AGAIN: Final = (
    None,
    None,
    Moment.AFTER_INTENT,
    Moment.AFTER_CALL,
    Moment.BEFORE_DONE,
    Moment.IN_PROBE,
)


def cases(seed: str, count: int) -> Iterator[Case]:
    """Return cases: every moment with every fault in turn, and the rest by chance."""
    chance, kinds = Chance(seed), list(product(Moment, Fault))
    for number in range(count):
        moment, fault = kinds[number % len(kinds)]
        asked = moment is not Moment.IN_PROBE and chance.below(4) == 0
        again = chance.one_of(_KILLS_AGAIN)
        if asked and again is Moment.IN_PROBE:
            again = None
        yield Case(number, moment, fault, chance.below(2) == 1, asked, again)
