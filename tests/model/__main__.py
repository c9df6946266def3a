"""Print what is searched, and what catches each mutant: `python -m tests.model`.

It fails when a promise is broken, or when a mutant that must be caught is not; guards of verbs are only told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.model.configurations import LARGE, SMALL, model_of
from tests.model.judging import Caught, Judges, judge_effect, judge_remote
from tests.model.mutants import Mutant, all_mutants, effect_mutants, remote_mutants, verb_mutants
from tests.model.search import explore


def main() -> int:
    states = transitions = broken = 0
    for name, shape in (SMALL | {name: shape for name, (_, shape) in LARGE.items()}).items():
        report = explore(model_of(shape))
        states, transitions = states + report.states, transitions + report.transitions
        broken += bool(report.broken)
        print(f"{name}: {report}")
    print(f"{states:,} states, {transitions:,} transitions in all\n")
    judges = Judges()
    missed = _judged("mutants", judges.judge, all_mutants())
    missed += _judged("guards of ends of remote steps", judge_remote, remote_mutants())
    missed += _judged("guards of effects", judge_effect, effect_mutants())
    _judged("guards of verbs", judges.judge_verb, verb_mutants())
    return 1 if broken or missed else 0


def _judged(what: str, judge: Callable[[Mutant], Caught], mutants: list[Mutant]) -> int:
    """Print what catches each mutant, and return how many nothing does."""
    caught = list(map(judge, mutants))
    missed = sum(not one.by for one in caught)
    print(*caught, sep="\n")
    print(f"\n{len(caught) - missed} of {len(caught)} {what} caught\n")
    return missed


if __name__ == "__main__":
    sys.exit(main())
