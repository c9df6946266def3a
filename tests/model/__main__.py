"""Print what is searched, and who catches each mutant: `python -m tests.model`."""

from __future__ import annotations

from tests.model.configurations import LARGE, SMALL, model_of
from tests.model.judging import Judges
from tests.model.mutants import all_mutants, verb_mutants
from tests.model.search import explore


def main() -> None:
    states = transitions = 0
    for name, shape in (SMALL | {name: shape for name, (_, shape) in LARGE.items()}).items():
        report = explore(model_of(shape))
        states, transitions = states + report.states, transitions + report.transitions
        print(f"{name}: {report}")
    print(f"{states:,} states, {transitions:,} transitions in all\n")
    judges = Judges()
    for what, mutants, judged in (
        ("mutants", all_mutants(), judges.judge),
        ("guards of verbs", verb_mutants(), judges.judge_verb),
    ):
        caught = list(map(judged, mutants))
        print(*caught, sep="\n")
        print(f"\n{sum(bool(one.by) for one in caught)} of {len(caught)} {what} caught\n")


if __name__ == "__main__":
    main()
