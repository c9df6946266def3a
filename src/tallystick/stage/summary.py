"""The result of one run of a stage, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallystick.core.lifecycles import SlotState
from tallystick.stage.outcome import CANCEL, FAIL, SKIP, SUCCESS, Outcome

FAILURES_SHOWN = 20


@dataclass(slots=True)
class Summary:
    """The books of one run. `resumed` items had their outcome before this run and were not computed again.

    `committed` counts this run's outcomes; `complete` says that the input ended and all of it is committed.
    """

    name: str
    resumed: int = 0
    committed: int = 0
    outcomes: dict[SlotState, int] = field(
        default_factory=lambda: dict.fromkeys((SUCCESS, SKIP, FAIL, CANCEL), 0)
    )
    started: int = 0
    retried: int = 0
    reclaimed: int = 0
    stale: int = 0
    redelivered: int = 0
    batches: int = 0
    syncs: int = 0
    seconds: float = 0.0
    complete: bool = False
    stopped: str = ""
    failures: list[Outcome[object]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether everything is committed and nothing in this run failed."""
        return self.complete and not self.outcomes[FAIL]

    @property
    def rate(self) -> float:
        """Return committed items per second."""
        return self.committed / self.seconds if self.seconds > 0 else 0.0

    def count(self, outcomes: tuple[Outcome[object], ...]) -> None:
        """Add a committed batch."""
        self.batches += 1
        self.committed += len(outcomes)
        for outcome in outcomes:
            self.outcomes[outcome.state] += 1
            if outcome.state is FAIL and len(self.failures) < FAILURES_SHOWN:
                self.failures.append(outcome)

    def __str__(self) -> str:
        state = "complete" if self.complete else f"stopped ({self.stopped or 'unfinished'})"
        before = f", {self.resumed} before" if self.resumed else ""
        speed = f"{self.committed} committed in {self.seconds:.1f} s ({self.rate:,.0f}/s)"
        ends = ("succeeded", SUCCESS), ("skipped", SKIP), ("failed", FAIL), ("cancelled", CANCEL)
        numbers = "started", "retried", "reclaimed", "stale", "redelivered", "batches", "syncs"
        lines = [
            f"{self.name}: {state}; {speed}{before}",
            "  " + ", ".join(f"{word} {self.outcomes[end]}" for word, end in ends),
            "  " + ", ".join(f"{name} {getattr(self, name)}" for name in numbers),
        ]
        lines += [
            f"  failed: seq {outcome.seq}: {outcome.failure.type}: {outcome.failure.message}"
            for outcome in self.failures
            if outcome.failure is not None
        ]
        return "\n".join(lines)
