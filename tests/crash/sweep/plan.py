"""Which cases a sweep runs: every point once, then visits, pairs and zombies by chance, until time is up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeVar

from tests.crash.sweep.trial import ANYWHERE, USUAL, WAITING, Arm, Case, Kind, Relief, Stage

T = TypeVar("T")

Visits = Mapping[str, Mapping[str, int]]

# About as long as the usual jobs take when nobody dies.
_WORK_MS: Final = 200

# A crash of this kind leaves work behind for the process that is to die while it recovers.
_FIRST_DEATH: Final = {
    "sqlite": Arm(Stage.WORK, "sqlite.tx.after", 2),
    "postgres": Arm(Stage.WORK, "postgres.tx_commit.before", 2),
}
_FIRST_WAITING_DEATH: Final = {
    store: Arm(Stage.WORK_WAITING, f"{store}.await.after", 6) for store in ("sqlite", "postgres")
}


def calibration(store: str) -> tuple[Case, ...]:
    """Return runs in which nobody dies, to learn which process visits which point how often."""
    return (
        Case(count=True),
        Case(count=True, arms=(_FIRST_DEATH[store],)),
        Case(count=True, kind=Kind.FLEETING),
        Case(count=True, kind=Kind.ZOMBIE, hold="quote", jobs=("order",)),
        Case(count=True, kind=Kind.WAITING, jobs=WAITING),
        Case(count=True, kind=Kind.WAITING, jobs=WAITING, arms=(_FIRST_WAITING_DEATH[store],)),
    )


# Transactions that share a flush for longer than their leases last, while another worker sweeps.
LONG_FLUSH: Final = Case(jobs=("sluggish",) * 8, beside=True)
# A worker that is asked to stop gives back what does not end in time, and may die while it does.
LEAVING: Final = Case(leave_ms=20)
POISON: Final = Case(kind=Kind.POISON, jobs=("poison", *USUAL))
ZOMBIES: Final = tuple(
    Case(kind=Kind.ZOMBIE, hold=hold, relief=relief, jobs=jobs)
    for hold, relief, jobs in (
        ("before_tx", Relief.FINISHED, ("order",)),
        ("quote", Relief.BEGUN, ("order",)),
        ("finish", Relief.NOBODY, ("slow",)),
        ("quote", Relief.FINISHED, USUAL),
        ("after_quote", Relief.FINISHED, ("order", "crawl")),
        ("before_tx", Relief.NOBODY, ("crawl",)),
        ("finish", Relief.FINISHED, ("slow", "order")),
        ("fetch", Relief.FINISHED, ("crawl", "order")),
        ("inside_tx", Relief.BLOCKED, ("order", "crawl")),
    )
)
WAITING_ZOMBIES: Final = tuple(
    Case(kind=Kind.ZOMBIE, hold=hold, relief=relief, jobs=jobs)
    for hold, relief, jobs in (
        ("between_waits", Relief.FINISHED, ("approval",)),
        ("chore", Relief.FINISHED, ("family", "twins")),
        ("turn", Relief.FINISHED, ("rounds", "approval")),
        ("joined", Relief.FINISHED, ("family",)),
        ("turn", Relief.NOBODY, ("rounds",)),
        ("between_waits", Relief.FINISHED, WAITING),
    )
)


class Chance:
    """Numbers that look random and are the same for the same seed."""

    def __init__(self, seed: str) -> None:
        """Start at the beginning of the seed's sequence."""
        self._seed = seed
        self._drawn = 0

    def below(self, limit: int) -> int:
        """Return a whole number from 0 up to but not including the limit."""
        self._drawn += 1
        digest = sha256(f"{self._seed}:{self._drawn}".encode()).digest()
        return int.from_bytes(digest[:8]) % limit

    def one_of(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]


class Plan:
    """Cases, once it is known who visits what."""

    def __init__(self, visits: Visits, seed: str, store: str = "sqlite") -> None:
        """Plan for a store."""
        self._store = store
        self._visits = visits
        self._chance = Chance(seed)

    def each_point(self, points: Sequence[str], again: int = 0) -> list[Case]:
        """Return a case for every point that anybody visits; `again` takes another stage than before."""
        cases = []
        for point in points:
            stages = [stage for stage in _PREFERRED if self._visits.get(stage, {}).get(point)]
            if stages:
                cases.append(self._single(Arm(stages[again % len(stages)], point)))
        return cases

    def each_waiting_point(self) -> list[Case]:
        """Return a case for every point that the processes around waiting jobs visit, in each of them."""
        return [
            self._single(Arm(stage, point))
            for stage in (Stage.WORK_WAITING, Stage.SEND)
            for point in sorted(self._visits.get(stage, {}))
        ]

    def pairs(self, count: int) -> list[Case]:
        """Return cases in which a process dies and so does the one that recovers from it."""
        return [self._pair() for _ in range(count)]

    def every_visit(self) -> list[Case]:
        """Return a case for every visit of every point in every stage, in an order by chance."""
        arms = [
            Arm(stage, point, visit)
            for stage in _PREFERRED
            for point, visits in sorted(self._visits.get(stage, {}).items())
            for visit in range(1, visits + 1)
        ]
        return [self._single(arms.pop(self._chance.below(len(arms)))) for _ in range(len(arms))]

    def endless(self) -> Iterator[Case]:
        """Return every visit and cases by chance in turn, then chance for as long as it is asked for."""
        chance = self._chance
        singles = self.every_visit()
        while True:
            if singles:
                yield singles.pop()
                yield self._pair()
            draw = chance.below(20)
            if draw < 8:
                yield self._pair()
            elif draw < 12:
                yield self._anywhere()
            elif draw < 14:
                yield self._single(self._arm(chance.one_of((Stage.WORK, Stage.WORK, Stage.SUBMIT))))
            elif draw < 16:
                yield Case(arms=(self._arm(Stage.WORK),), beside=True)
            elif draw < 17:
                yield self._single(self._arm(chance.one_of((Stage.FLEETING, Stage.SEND))))
            elif draw < 19:
                yield chance.one_of((*ZOMBIES, *WAITING_ZOMBIES))
            else:
                yield chance.one_of((POISON, LONG_FLUSH, self._leaving()))

    def _anywhere(self) -> Case:
        """Return a case that kills from outside, so also in the middle of what the store does."""
        if self._chance.below(2):
            stage = self._chance.one_of((Stage.SUBMIT_WAITING, Stage.WORK_WAITING, Stage.SEND))
            second = Arm(Stage.RECOVER_WAITING, ANYWHERE, self._chance.below(4 * _WORK_MS))
            return _waiting(Arm(stage, ANYWHERE, self._chance.below(2 * _WORK_MS)), second)
        first = Arm(self._chance.one_of((Stage.SUBMIT, Stage.WORK)), ANYWHERE, self._chance.below(_WORK_MS))
        return Case(arms=(first, Arm(Stage.RECOVER, ANYWHERE, self._chance.below(4 * _WORK_MS))))

    def _leaving(self) -> Case:
        """Return a case in which a worker is asked to stop, and perhaps dies over it."""
        arms = (self._arm(Stage.WORK),) if self._chance.below(2) else ()
        return Case(arms=arms, leave_ms=1 + self._chance.below(_WORK_MS))

    def _pair(self) -> Case:
        return self._waiting_pair() if self._chance.below(2) else self._usual_pair()

    def _waiting_pair(self) -> Case:
        """Return a case in which two processes around waiting jobs die."""
        chance = self._chance
        first = self._arm(chance.one_of((Stage.SUBMIT_WAITING, Stage.WORK_WAITING, Stage.SEND)))
        later: tuple[Stage, ...]
        match first.stage:
            case Stage.SUBMIT_WAITING:
                later = (Stage.SUBMIT_WAITING, Stage.WORK_WAITING, Stage.SEND)
            case Stage.SEND:
                later = (Stage.SEND, Stage.WORK_WAITING)
            case _:
                later = (Stage.RECOVER_WAITING,)
        return _waiting(first, self._arm(chance.one_of(later)))

    def _usual_pair(self) -> Case:
        first = self._arm(self._chance.one_of((Stage.SUBMIT, Stage.WORK, Stage.WORK, Stage.WORK)))
        if first.stage is Stage.SUBMIT:
            second = self._arm(self._chance.one_of((Stage.SUBMIT, Stage.WORK)))
        else:
            second = self._arm(Stage.RECOVER)
        return Case(arms=(first, second))

    def _arm(self, stage: Stage) -> Arm:
        visits = self._visits[stage]
        point = self._chance.one_of(sorted(visits))
        return Arm(stage, point, 1 + self._chance.below(visits[point]))

    def _single(self, arm: Arm) -> Case:
        match arm.stage:
            case Stage.FLEETING:
                return Case(kind=Kind.FLEETING, arms=(arm,))
            case Stage.ZOMBIE:
                return Case(kind=Kind.ZOMBIE, arms=(arm,), hold="quote", jobs=("order",))
            case Stage.RECOVER:
                return Case(arms=(_FIRST_DEATH[self._store], arm))
            case Stage.RECOVER_WAITING:
                return _waiting(_FIRST_WAITING_DEATH[self._store], arm)
            case Stage.SUBMIT_WAITING | Stage.WORK_WAITING | Stage.SEND:
                return _waiting(arm)
            case Stage.SUBMIT | Stage.WORK:
                return Case(arms=(arm,))


def _waiting(*arms: Arm) -> Case:
    return Case(kind=Kind.WAITING, arms=arms, jobs=WAITING)


_PREFERRED: Final = (
    Stage.WORK,
    Stage.SUBMIT,
    Stage.RECOVER,
    Stage.FLEETING,
    Stage.ZOMBIE,
    Stage.WORK_WAITING,
    Stage.SEND,
    Stage.SUBMIT_WAITING,
    Stage.RECOVER_WAITING,
)
