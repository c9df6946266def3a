"""Who catches a mutant: the first small world in which a promise breaks, an exception appears or a state is stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.model.configurations import SMALL, model_of
from tests.model.mutants import Mutant, all_mutants
from tests.model.rules import Rules, load
from tests.model.search import explore

LIMIT = 60_000

# The world that caught most is asked first; which one catches does not matter, only that one does.
_catches: Counter[str] = Counter()


class Caught(NamedTuple):
    """A mutant and the world that caught it; an empty name means that nobody did."""

    mutant: str
    by: str
    states: int
    why: str

    def __str__(self) -> str:
        return f"{self.mutant}\n    caught by {self.by or 'NOBODY'} after {self.states:,} states: {self.why}"


def judge(mutant: Mutant) -> Caught:
    """Search the small worlds until one of them breaks."""
    rules = Rules(load(mutant.changed))
    for name, shape in sorted(SMALL.items(), key=lambda item: -_catches[item[0]]):
        try:
            report = explore(model_of(shape, rules, mutant.flaws), LIMIT)
        except RuntimeError as endless:
            return Caught(mutant.name, name, LIMIT, str(endless))
        if report.broken:
            _catches[name] += 1
            return Caught(mutant.name, name, report.states, report.broken.splitlines()[0])
    return Caught(mutant.name, "", 0, "every promise holds without this guard")


def judge_all() -> Iterator[Caught]:
    yield from map(judge, all_mutants())
