"""What a segment knows without asking the store: earlier calls, answers to come, and those it has taken.

A call that was made before is recorded, or it is open: a wait, a sleep or a group that nothing has answered
yet, or a step that is to be tried again in a while. Code that is what it was comes to all of them, in their
order.

The claim brings the message that drives the segment, and the answer to a wait the signals that stand behind
it. Waits take these in their order without asking the store, and what they took is written with the next
bundle of the segment. A crash before that forgets it, and nothing is wrong: the messages are there still, in
the same order, and nothing outside has seen a value, because every step and transaction waits until what
was taken is durable (decision 0109).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from tallystick.clock import Clock
from tallystick.core.limits import AHEAD_SIGNALS_MAX, HELD_BACKOFF_MS_MAX
from tallystick.engine.segment_parts.paths import ABORTED
from tallystick.store.api import Answer, Bundle, ClaimedJob, Record, TakeAnswer, Wait, Wake

Place: TypeAlias = tuple[str, int]

_ANSWERED: Final = ("wait", "sleep", "group")
_LAST: Final = sys.maxsize
_ANY_KIND: Final = ""


class EarlierCalls:
    """The calls that earlier segments of one job have made in this turn."""

    __slots__ = ("_open", "_opened", "_records", "_unasked", "left")

    def __init__(self, claimed: ClaimedJob | None) -> None:
        """Read what was recorded and what is open; this segment has come to nothing of it."""
        self._records: dict[Place, Record] = {}
        self._unasked: dict[Place, Record] = {}
        # Each with its kind, and the place of the first answer that came after it was opened.
        self._open: dict[Place, tuple[str, int]] = {}
        self._opened: frozenset[Place] = frozenset()
        # Whether there is anything of it that this segment has not come to; every step asks.
        self.left = False
        if claimed is not None:
            self._read(claimed)

    def _read(self, claimed: ClaimedJob) -> None:
        self._records = {(record.name, record.occurrence): record for record in claimed.records}
        self._unasked = dict(self._records)
        self._open = {
            (name, occurrence): (kind, _first_answer(claimed.records, attempt or 0))
            for name, occurrence, kind, attempt in claimed.opened
        }
        pending = _tried_again(claimed)
        if pending is not None and pending not in self._records:
            self._open[pending] = (_ANY_KIND, _LAST)
        self._opened = frozenset(self._open)
        self._look()

    @property
    def behind(self) -> bool:
        """Tell whether something is recorded that this segment has not asked for."""
        return bool(self._unasked)

    @property
    def open(self) -> list[Place]:
        """Return what is open and was not come to."""
        return list(self._open)

    def recall(self, kind: str, name: str, occurrence: int) -> Record | None:
        """Return what was recorded for this call, if anything; it was come to now."""
        place = (name, occurrence)
        self._unasked.pop(place, None)
        self.meet(kind, place)
        self._look()
        return self._records.get(place)

    def started(self, place: Place) -> Record | None:
        """Return what was recorded for a group that is started here and waited for later."""
        self.meet("group", place)
        return self._records.get(place)

    def meet(self, kind: str, place: Place) -> None:
        """Note that a call of this kind was come to, if it is open."""
        if self._open and self._open.get(place, (None,))[0] in (kind, _ANY_KIND):
            del self._open[place]
            self._look()

    def _look(self) -> None:
        self.left = bool(self._unasked or self._open)

    def was_opened(self, place: Place) -> bool:
        """Tell whether this call was open when the segment began."""
        return place in self._opened

    def has(self, place: Place) -> bool:
        """Tell whether this call is recorded."""
        return place in self._records

    def skipped(self, n: int) -> bool:
        """Tell whether something that was recorded or opened before place `n` has not been come to yet."""
        if self._unasked and next(iter(self._unasked.values())).n < n:
            return True
        return any(answered <= n for _kind, answered in self._open.values())


def _first_answer(records: Iterable[Record], attempt: int) -> int:
    """Return the place of the first answer that may have come after this attempt had opened a wait.

    Waits are opened when nothing else of the workflow can go on, so the next record is that of an answer.
    """
    answers = (each.n for each in records if each.kind in _ANSWERED and (each.attempt or 0) >= attempt)
    return next(answers, _LAST)


def _tried_again(claimed: ClaimedJob) -> Place | None:
    """Return the step that the job waits to try again, if it was put away for that."""
    last = claimed.tries[-1] if claimed.tries else None
    if last is None or last.type != "try" or any(record.n > last.n for record in claimed.records):
        return None
    tried = msgspec.json.decode(last.payload)
    return (tried["step"], tried["occurrence"]) if tried["delay_ms"] > HELD_BACKOFF_MS_MAX else None


NO_PAST: Final = EarlierCalls(None)
"""The past of a job that has none; nothing is ever taken from it."""


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


def suspended(waits: Sequence[Wait]) -> dict[str, object]:
    """Return what the fact of a suspension says: what is waited for, of which kinds, and what has a timer."""
    timed = ", ".join(_named(wait) for wait in waits if wait.due_at is not None)
    about = {"attempt": ABORTED, "timed": timed} if timed else {"attempt": ABORTED}
    kinds = ", ".join(wait.kind for wait in waits)
    return {**about, "as": kinds, "for": ", ".join(map(_named, waits))}


def _named(wait: Wait) -> str:
    return f"{wait.name}#{wait.occurrence}"
