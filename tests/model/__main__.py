"""Print what is searched, and what catches each mutant: `python -m tests.model`.

It fails when a promise is broken, or when a mutant is not caught.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.model.configurations import LARGE, SMALL, model_of
from tests.model.judging import Caught, Judges, judge_effect, judge_protocol, judge_verb
from tests.model.mutants import SAVES, Mutant, all_mutants, effect_mutants, verb_mutants
from tests.model.protocol_rules import NOT_SEEN, mutants
from tests.model.search import explore


def main() -> int:
    states = transitions = broken = 0
    for name, shape in (SMALL | {name: shape for name, (_, shape) in LARGE.items()}).items():
        report = explore(model_of(shape))
        states, transitions = states + report.states, transitions + report.transitions
        broken += bool(report.broken)
        print(f"{name}: {report}")
    print(f"{states:,} states, {transitions:,} transitions in all\n")
    missed = _judged("mistakes and guards of decisions", Judges().judge, all_mutants())
    missed += _judged("guards of verbs", judge_verb, verb_mutants())
    missed += _judged("guards of verbs about effects", judge_effect, effect_mutants())
    missed += _judged("guards of verbs about protocol jobs", judge_protocol, mutants())
    print(
        f"{missed or 'no'} mutants of verbs and decisions are not caught. Left out, because no "
        f"answer changes:"
    )
    print(*(f"  {name} ({why})" for name, why in {**SAVES, **NOT_SEEN}.items()), sep="\n")
    return 1 if broken or missed else 0


def _judged(what: str, judge: Callable[[Mutant], Caught], judged: list[Mutant]) -> int:
    """Print what catches each mutant, and return how many nothing does."""
    caught = list(map(judge, judged))
    missed = sum(not one.by for one in caught)
    print(*caught, sep="\n")
    print(f"\n{len(caught) - missed} of {len(caught)} {what} caught\n")
    return missed


if __name__ == "__main__":
    sys.exit(main())
