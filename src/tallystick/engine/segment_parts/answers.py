"""Answers that a segment knows before it waits for them, and those that it has taken and not yet written.

The claim brings the message that drives the segment, and the answer to a wait the signals that stand behind
it. Waits take these in their order without asking the store, and what they took is written with the next
bundle of the segment. A crash before that forgets it, and nothing is wrong: the messages are there still, in
the same order, and nothing outside has seen a value, because every step and transaction waits until what
was taken is durable (decision 0109).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from tallystick.clock import Clock
from tallystick.core.limits import AHEAD_SIGNALS_MAX
from tallystick.store.api import Answer, Bundle, ClaimedJob, TakeAnswer, Wait, Wake

# How many signals an answer brings at first. A segment that uses them up gets twice as many next time.
_AT_FIRST: Final = 8


class Answers:
    """What one segment knows and has taken."""

    __slots__ = ("_ahead", "_claimed", "_clock", "_driver", "_wanted", "taken")

    def __init__(self, claimed: ClaimedJob, clock: Clock) -> None:
        """Know what drove the claim, unless an earlier segment has taken it."""
        self._claimed = claimed
        self._clock = clock
        wake = claimed.wake
        self._driver = None if wake is None or wake.taken else wake
        self._ahead: dict[str, deque[Wake]] = {}
        # What was taken and is not written. Threads beside the workflow's own may write it, each of it once.
        # Most segments take nothing, and every one would pay for a deque.
        self.taken: deque[TakeAnswer] | None = None
        self._wanted = _AT_FIRST

    @property
    def has_driver(self) -> bool:
        """Tell whether the message that drove the claim was taken, here or by an earlier segment."""
        return self._claimed.wake is not None and self._driver is None

    def find(self, wait: Wait, *, alone: bool) -> Wake | None:
        """Return the message that a wait takes; None when the store must be asked.

        Signals that came ahead are for a workflow that is `alone`: where other tasks or threads may wait too,
        the store says which comes first. A wait with a time limit asks the store as well.
        """
        driver = self._driver
        if driver is not None and driver.answers(wait, self._claimed.dimension):
            return driver
        ahead = self._ahead.get(wait.name) if alone and wait.kind == "wait" and wait.due_at is None else None
        return ahead[0] if ahead else None

    def take(self, wait: Wait, wake: Wake) -> None:
        """Give a wait what was found for it; that is written with what comes next, or before it."""
        if wake is self._driver:
            self._driver = None
        else:
            self._ahead[wait.name].popleft()
        claimed = self._claimed
        at = self._clock.wall_ms()
        if self.taken is None:
            self.taken = deque()
        self.taken.append(TakeAnswer(claimed.fence, claimed.chain, claimed.dimension, wait, wake, at))

    def asking(self, waits: Sequence[Wait], *, alone: bool) -> int:
        """Return how many signals the answer to these waits is to bring, of which nothing is known now.

        One that is waited for the first time may well be waited for once in every turn.
        """
        for wait in waits:
            self._ahead.pop(wait.name, None)
        return self._wanted if alone and len(waits) == 1 and waits[0].occurrence > 1 else 0

    def bring(self, wait: Wait, answer: Answer) -> None:
        """Keep the signals that an answer has brought."""
        if answer.ahead:
            self._ahead[wait.name] = deque(answer.ahead)
            self._wanted = min(2 * len(answer.ahead), AHEAD_SIGNALS_MAX)

    def carried(self) -> Bundle:
        """Return what was taken, in its order, to be written now."""
        if not self.taken:
            return ()
        taken: list[TakeAnswer] = []
        while self.taken:
            taken.append(self.taken.popleft())
        return tuple(taken)


def told_by(ahead_ms: int, waits: Sequence[Wait]) -> tuple[Wait, ...]:
    """Return waits with their timers on a clock that is so far ahead of the one they are on."""
    return tuple(
        wait if wait.due_at is None else wait._replace(due_at=wait.due_at + ahead_ms) for wait in waits
    )
