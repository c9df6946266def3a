"""The numbers that explain why a stage does not go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class WindowOccupancy:
    """One open window: how many slots it has, and how many are in each condition."""

    number: int
    first: int
    slots: int
    sealed: bool
    dispatched: int
    in_flight: int
    terminal: int
    committed: int


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The whole stage at one moment. `commit_lag` is how many finished items wait for their turn.

    The oldest blocked seq is the lowest one without an outcome: everything behind it waits.
    """

    next_commit: int
    highest_seen: int
    terminal: int
    in_flight: int
    windows: tuple[WindowOccupancy, ...]
    oldest_blocked: int | None
    oldest_blocked_state: str
    buffered_bytes: int
    commit_lag: int

    def as_dict(self) -> dict[str, object]:
        """Return plain data, the way an error carries it."""
        return asdict(self)

    def __str__(self) -> str:
        blocked = (
            "nothing"
            if self.oldest_blocked is None
            else f"seq {self.oldest_blocked} ({self.oldest_blocked_state})"
        )
        lines = [
            f"next commit {self.next_commit}, highest seen {self.highest_seen}, oldest blocked {blocked}",
            f"terminal {self.terminal}, in flight {self.in_flight}, commit lag {self.commit_lag}",
            f"buffered bytes {self.buffered_bytes}",
        ]
        lines += [
            f"window {w.number}: seqs {w.first}..{w.first + w.slots - 1}, {w.dispatched} dispatched, "
            f"{w.in_flight} in flight, {w.terminal} terminal, {w.committed} committed"
            for w in self.windows
        ]
        return "\n".join(lines)
