"""Breadth-first search of every reachable state, and of the way from each of them to an end.

A model has `initial()`, `successors(state)` (pairs of a label and a state), `check(state)`, `final(state)`,
`ledgers(state)` and `helpful(label)`. Safety is `check` and what `successors` itself raises; "every state can
still end" is that a final state is reached from each one by helpful moves alone: nobody crashes or cancels.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np


class Violation(AssertionError):
    """A promise is broken in a reachable state."""


class Endless(RuntimeError):
    """There are more states than the search was allowed to visit."""


class Report(NamedTuple):
    """What a search found; `trace` leads from the initial state to the broken promise."""

    states: int
    transitions: int
    depth: int
    seconds: float
    broken: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        size = f"{self.states:,} states, {self.transitions:,} transitions"
        head = f"{size}, depth {self.depth}, {self.seconds:.1f} s"
        if not self.broken:
            return head
        lines = "\n".join(f"  {n:3} {label}" for n, label in enumerate(self.trace, 1))
        return f"{head}\n{self.broken}\nafter:\n{lines}"


class _Found:
    def __init__(self) -> None:
        self.index: dict[Any, int] = {}
        self.parent: list[int] = []
        self.label: list[Any] = []
        self.sources: list[int] = []
        self.targets: list[int] = []

    def trace(self, at: int, *last: Any) -> tuple[str, ...]:
        labels = list(last)
        while at:
            labels.append(self.label[at])
            at = self.parent[at]
        return tuple(spoken(label) for label in reversed(labels))


def spoken(label: Any) -> str:
    return label if isinstance(label, str) else " ".join(str(part) for part in label)


def explore(model: Any, limit: int = 2_000_000) -> Report:
    """Visit every state; stop at the first broken promise."""
    begun = time.process_time()
    found = _Found()
    start = model.initial()
    found.index[start], found.parent, found.label = 0, [0], [""]
    level, depth, moves = [start], 0, 0
    broken, trace = "", ()
    while level and not broken:
        following: list[Any] = []
        for state in level:
            try:
                moves += _expand(model, state, found, following)
            except Exception as error:  # noqa: BLE001 (a rule that raises is broken, whatever it raises)
                broken = f"{type(error).__name__}: {error}"
                trace = found.trace(found.index[state], *getattr(error, "labels", ()))
                break
        if len(found.index) > limit:
            raise Endless(f"more than {limit:,} states")
        level, depth = following, depth + bool(following)
    if not broken:
        broken, trace = _stuck(model, found)
    return Report(len(found.index), moves, depth, time.process_time() - begun, broken, trace)


def _expand(model: Any, state: Any, found: _Found, following: list[Any]) -> int:
    here = found.index[state]
    index, sources, targets, helpful = found.index, found.sources, found.targets, model.helpful
    before = model.ledgers(state)
    successors = model.successors(state)
    for label, after in successors:
        there = index.get(after)
        if there is None:
            try:
                model.check(after)
                for old, new in zip(before, model.ledgers(after), strict=True):
                    if new < old:
                        raise Violation(f"a ledger went back from {old:015d} to {new:015d}")
            except AssertionError as error:
                error.labels = (label,)  # type: ignore[attr-defined]  # a mark for whoever catches it
                raise
            there = index[after] = len(index)
            found.parent.append(here)
            found.label.append(label)
            following.append(after)
        if helpful(label):
            sources.append(here)
            targets.append(there)
    return len(successors)


def _stuck(model: Any, found: _Found) -> tuple[str, tuple[str, ...]]:
    """Return the first state from which no end can be reached, if there is one."""
    ends = np.fromiter((model.final(state) for state in found.index), bool, len(found.index))
    sources, targets = np.array(found.sources, np.int64), np.array(found.targets, np.int64)
    while True:
        reached = sources[ends[targets]]
        if ends[reached].all():
            break
        ends[reached] = True
    if ends.all():
        return "", ()
    first = int(np.argmin(ends))
    return f"Stuck: no end can be reached any more ({int((~ends).sum()):,} states)", found.trace(first)
