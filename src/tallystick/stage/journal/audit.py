"""What a journal proves: every outcome once, in order, and nothing computed after it was committed.

The proof is double entry. Every run notes how many attempts it began, every outcome how many attempts it
took. In a run that ended in order the two sums must be equal, and all outcomes of a run lie at or behind
the seq it began at: there is no attempt left over that an older outcome could have been computed with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from tallystick.core.lifecycles import SlotState
from tallystick.stage.journal.format import Batched, Closed, Cut, JournalLine, JournalOpened, Record, lines
from tallystick.stage.journal.journal import Standing, read_batches, read_standing
from tallystick.stage.outcome import SUCCESS, ItemFailure


class Recorded(NamedTuple):
    """One outcome as the journal holds it."""

    seq: int
    state: SlotState
    value: object
    failure: ItemFailure | None
    attempts: int
    run: int


@dataclass(slots=True)
class RunBooks:
    """One run: where it began, what it committed, and whether its sums agree."""

    number: int
    first: int
    at_ms: int
    committed: int = 0
    batches: int = 0
    attempts: int = 0
    started: int = 0
    closed: bool = False
    complete: bool = False

    @property
    def balanced(self) -> bool:
        """Tell whether no attempt is unaccounted for; a run that did not end may have begun more."""
        return self.attempts == self.started if self.complete else self.attempts <= self.started


@dataclass(slots=True)
class JournalAudit:
    """What a journal adds up to."""

    path: Path
    standing: Standing
    runs: list[RunBooks] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Tell whether every run accounts for all its attempts: none is left for a second computation."""
        return all(run.balanced for run in self.runs)

    def as_dict(self) -> dict[str, object]:
        """Return plain data, the way `--json` shows it."""
        standing = self.standing
        return {
            "stage": standing.stage,
            "next": standing.next,
            "delivered": standing.delivered,
            "complete": standing.complete,
            "ok": self.ok,
            "outcomes": self.outcomes,
            "runs": [{**asdict(run), "balanced": run.balanced} for run in self.runs],
            "cuts": [{"offset": cut.offset, "bytes": cut.bytes} for cut in standing.cuts],
        }

    def __str__(self) -> str:
        standing = self.standing
        state = "complete" if standing.complete else f"unfinished, next is seq {standing.next}"
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items())) or "none"
        rows = [f"{self.path}: stage {standing.stage}, {state}", f"  outcomes: {kinds}"]
        for run in self.runs:
            end = "complete" if run.complete else "stopped" if run.closed else "cut short"
            books = "books agree" if run.balanced else "BOOKS DISAGREE"
            rows.append(
                f"  run {run.number}: from seq {run.first}, {run.committed} outcomes in {run.batches} "
                f"batches, {run.attempts} of {run.started} attempts committed, {end}; {books}"
            )
        rows += [f"  cut: {cut.bytes} torn bytes at {cut.offset}" for cut in standing.cuts]
        return "\n".join(rows)


def read_journal(path: str | os.PathLike[str]) -> Iterator[Recorded]:
    """Return the outcomes in a journal, in seq order, with their values."""
    for run, batch in read_batches(Path(path)):
        for index, (state, attempts, _, raw) in enumerate(batch.rows):
            done = state == SUCCESS
            value = msgspec.json.decode(raw) if done else None
            failure = None if done else msgspec.json.decode(raw, type=ItemFailure | None)
            yield Recorded(batch.first + index, SlotState(state), value, failure, attempts, run)


def audit(path: str | os.PathLike[str]) -> JournalAudit:
    """Add up a journal; raise `JournalCorrupt` if no stage can have written it."""
    found = JournalAudit(Path(path), read_standing(Path(path)))
    with found.path.open("rb") as file:
        for line in lines(found.path, file):
            if isinstance(line, JournalLine):
                _enter(found, line.record)
    return found


def _enter(found: JournalAudit, record: Record) -> None:
    match record:
        case JournalOpened():
            found.runs.append(RunBooks(record.run, record.next, record.at_ms))
        case Batched():
            run = found.runs[-1]
            run.batches += 1
            run.committed += len(record.rows)
            run.attempts += sum(row[1] for row in record.rows)
            run.started = record.started
            for row in record.rows:
                name = SlotState(row[0]).name
                found.outcomes[name] = found.outcomes.get(name, 0) + 1
        case Closed():
            run = found.runs[-1]
            run.started = record.started
            run.closed = True
            run.complete = record.complete
        case Cut():
            pass  # read_standing has collected it
