"""What the world outside knows of a run: books of the bank and of services, seats that were taken, ticks.

All of it is written by those outside, or by the user's own transactions; nothing comes from the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from tests.chaos.kinds import Kind

SEATS = 2
TICK_SECONDS = 2
TICK = "tick-"
# Ticks that are more than a minute late may be made up for by the last of them.
_LATE_SECONDS = 50
# The jobs of the last ticks may be under way when a run ends.
_LAST_TICKS = 10


class Charge(NamedTuple):
    """A line in the books of the bank."""

    key: str
    token: str
    receipt: str


class Service(NamedTuple):
    """A line in the books of a remote service: which step it did, with what, behind which other."""

    step: str
    label: str
    token: str
    before: str
    receipt: str


class Seat(NamedTuple):
    """A job of the narrow queue comes or goes, by an attempt; in the order in which that became durable."""

    label: str
    what: str
    attempt: int


class Outside(NamedTuple):
    """Everything that those outside have written down."""

    charges: tuple[Charge, ...] = ()
    services: tuple[Service, ...] = ()
    seats: tuple[Seat, ...] = ()
    # Whether no clock was wrong that the ticks go by.
    exact: bool = True

    @classmethod
    def read(
        cls,
        bank: Iterable[Mapping[str, Any]],
        services: Iterable[Mapping[str, Any]],
        seats: Iterable[tuple[str, str, int]],
        *,
        exact: bool,
    ) -> Outside:
        """Read what was noted; a step of a workflow is known by its name."""
        charges = (Charge(note["key"], note["token"], note["receipt"]) for note in bank)
        done = (
            Service(
                note["step"].rpartition("/")[2].partition("#")[0],
                note["label"],
                note["token"],
                note["before"],
                note["receipt"],
            )
            for note in services
        )
        return cls(tuple(charges), tuple(done), tuple(Seat(*row) for row in seats), exact)

    def acts_twice(self) -> list[str]:
        """Return what the bank was told more than once."""
        told: dict[str, int] = defaultdict(int)
        for charge in self.charges:
            told[charge.key] += 1
        return [f"{key}: the bank was told {count} times" for key, count in told.items() if count > 1]

    def labels(self) -> set[str]:
        """Return for whose work something was done outside."""
        return {each.key.partition(":")[2] for each in self.charges} | {each.label for each in self.services}

    def too_many_seats(self) -> list[str]:
        """Return where more jobs ran at once than the queue lets; each by one attempt from first to last."""
        came: dict[str, int] = {}
        stayed = set()
        for row in self.seats:
            if row.what == "comes":
                came[row.label] = row.attempt
            elif came.get(row.label) == row.attempt:
                stayed.add(row.label)
        found, present = [], set()
        for row in self.seats:
            if row.label not in stayed:
                continue
            if row.what == "goes":
                present.discard(row.label)
                continue
            present.add(row.label)
            if len(present) > SEATS:
                found.append(f"{sorted(present)} ran at once in a queue of {SEATS}")
        return found

    def missing_ticks(self, labels: Iterable[str]) -> list[str]:
        """Return the ticks that became no job, between others that did."""
        if not self.exact:
            return []
        instants = sorted(int(label.removeprefix(TICK)) for label in labels)[:-_LAST_TICKS]
        return [
            f"no tick between {before} and {after}"
            for before, after in pairwise(instants)
            if TICK_SECONDS < after - before < _LATE_SECONDS
        ]

    def disowned(self, kind: Kind, label: str, result: str, *, relaxed: bool) -> list[str]:
        """Return what those outside do not know of a job that succeeded, or know otherwise."""
        if kind.is_protocol:
            return self._disowned_protocol(kind, label, result)
        token, _, receipt = result.partition(":")
        if kind.bank:
            key = f"{kind.bank}:{label}"
            told = Charge(key, token, receipt) in self.charges
            return [] if told else [f"{key}: the bank has not given {receipt} for {token}"]
        if not kind.services:
            return []
        mine = [each for each in self.services if each.label == label and each.step in kind.services]
        found = []
        if not any((each.token, each.receipt) == (token, receipt) for each in mine):
            found.append(f"{label}: no service has given {receipt} for {token}")
        others = {each.token for each in mine} - {token}
        if others and not relaxed:
            found.append(f"{label}: a service was asked with {sorted(others)}, and the job has {token}")
        return found

    def _disowned_protocol(self, kind: Kind, label: str, result: str) -> list[str]:
        first, last = kind.services
        mine = [each for each in self.services if each.label == label]
        given = {each.receipt for each in mine if each.step == first}
        behind = {each.before for each in mine if each.step == last and each.receipt == result}
        if not behind:
            return [f"{label}: no service has given {result}"]
        return [] if behind <= given else [f"{label}: {last} was done behind {sorted(behind)}, not {first}"]
