"""When a job that goes on is due: what its facts and messages say, against the column that workers look at.

A job whose instant was taken away, or put off, is never claimed, and nothing else would tell. So each fact
that leaves a job to others says when it is due, or from what that follows: its birth, the end of its last
attempt, the timers that it waits for. A message that comes later makes it due at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from tallystick.core.audit.book import AttemptRow, Book, Findings, WholeJob
from tallystick.core.audit.fingerprints import DUE_IN
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import Activity, Message
from tallystick.core.queues.reusing import REPLACE
from tallystick.core.values import StoredEvent


class Since(Enum):
    """From what it follows when a job is due."""

    BIRTH = auto()
    # Of a fact by the clock of the store.
    FACT = auto()
    # The end of its last attempt.
    END = auto()
    # The end of its last attempt, or its birth, if that is earlier.
    TAKEN_BACK = auto()
    # Either: the author of its hold is not known.
    HELD = auto()
    # Timers of what it waits for.
    TIMERS = auto()
    NEVER = auto()
    UNKNOWN = auto()


class DueSaid(NamedTuple):
    """What the newest fact that tells it says about when a job is due."""

    since: Since
    # How much later.
    ms: int = 0
    # The instant of the fact.
    at: int = 0
    # What it waits for, as its fact names it, in which turn.
    waits: tuple[int, frozenset[str]] = (0, frozenset())
    # The effect whose outcome it waits for.
    effect: str = ""


UNTOLD: Final = DueSaid(Since.UNKNOWN)
"""What is known of a job before its first fact."""


def next_due(before: DueSaid, fact: StoredEvent, data: dict[str, object], dimension: int) -> DueSaid:
    """Return what is known after a fact."""
    kind = fact.type
    if kind == "suspend":
        return DueSaid(Since.TIMERS, waits=(dimension, frozenset(str(data.get("for", "")).split(", "))))
    if kind in _LATER:
        since, given = _LATER[kind], 0 if kind == "fork" else data.get(DUE_IN)
        return DueSaid(since, given, at=fact.at) if isinstance(given, int) else UNTOLD
    if kind == "release":
        until = data.get("ready_at")
        return DueSaid(Since.END, until - fact.at) if isinstance(until, int) else UNTOLD
    if kind in ("hold", "resolve"):
        return _held(before, fact, data)
    if kind == "doubt" and isinstance(rests := data.get(DUE_IN), int):
        return DueSaid(Since.END, rests, effect=str(data.get("effect")))
    return DueSaid(_AT_ONCE[kind], effect=str(data.get("effect"))) if kind in _AT_ONCE else before


def _held(before: DueSaid, fact: StoredEvent, data: dict[str, object]) -> DueSaid:
    """Return what is known after a hold, or after an answer about an effect."""
    if "attempt" in data:
        return DueSaid(Since.END if "effect" in data else Since.HELD)
    return DueSaid(Since.FACT, at=fact.at) if "effect" in data else before


# Facts that say how much later than something else the job is due.
_LATER: Final = {"submit": Since.BIRTH, "fork": Since.BIRTH, REPLACE: Since.FACT}
_AT_ONCE: Final = {
    "claim": Since.NEVER,
    "doubt": Since.NEVER,
    "again": Since.END,
    "reclaim": Since.TAKEN_BACK,
}


class WhenDue:
    """What the messages of a job say about when it is due, taken one by one, and the judgement."""

    def __init__(
        self,
        book: Book,
        whole: WholeJob,
        attempts: Sequence[AttemptRow],
        said: DueSaid,
        findings: Findings,
        *,
        is_owner_open: bool | None,
    ) -> None:
        """Begin before the first message.

        `is_owner_open` is there if the job waits for the key that another job has: it goes on when that one
        is done, be there a message or not.
        """
        self._book, self._whole, self._said, self._note = book, whole, said, findings.note
        self._is_owner_open = is_owner_open
        self._last = attempts[-1] if attempts else None
        self._timers: list[int] = []
        # Between which instants messages came that make it due.
        self._woken: tuple[int, int] | None = None
        self._waits: set[str] = set()

    @property
    def is_judged(self) -> bool:
        """Tell whether the job goes on, and its facts are of the form that tells."""
        return self._book.state not in JOB.final and bool(self._book.ledger_form)

    def add_activity(self, activity: Activity) -> None:
        """Take something that the job waits for."""
        if activity.is_open and activity.kind == "wait":
            self._waits.add(activity.name)

    def add_message(self, message: Message) -> None:
        """Take a message, after all activities."""
        if message.acked_at is not None:
            return
        turn, names = self._said.waits
        if message.kind == "timer":
            if message.dimension == turn and f"{message.name}#{message.occurrence}" in names:
                self._timers.append(message.due_at or 0)
        elif message.kind != "signal" or message.ledger or message.name in self._waits:
            first, last = self._woken or (message.created_at, message.created_at)
            self._woken = (min(first, message.created_at), max(last, message.created_at))

    def close(self) -> None:
        """Compare the column with what is known."""
        ready_at = self._whole.rest.ready_at
        if not self.is_judged or self._said.since is Since.UNKNOWN:
            return
        if self._last is not None and AttemptState(self._last.status) not in ATTEMPT.final:
            if ready_at is not None:
                self._note("due", f"a worker has it, and it is due at {ready_at}")
            return
        expected = self._expected()
        if ready_at == expected or (self._said.since is Since.HELD and ready_at == self._ended_at):
            is_told = not self._is_put_forward(expected)
        else:
            is_told = self._is_woken(ready_at)
        if is_told:
            return
        if ready_at is None and self._book.state == JobState.CANCELLING:
            return  # it ends at `cancel_at`
        when = "never" if ready_at is None else f"at {ready_at}"
        self._note("due", f"it is due {when}, and its facts and messages say otherwise")

    def _is_woken(self, ready_at: int | None) -> bool:
        """Tell whether a message has made it due then, or another job, which may leave none."""
        if ready_at is None:
            return False
        if self._is_owner_open is False and ready_at >= self._ended_at:
            return True
        return self._woken is not None and self._woken[0] <= ready_at <= self._woken[1]

    @property
    def _ended_at(self) -> int:
        return 0 if self._last is None else self._last.finished_at or 0

    def _is_put_forward(self, expected: int | None) -> bool:
        """Tell whether something has come since that makes it due earlier; a new job is not due by any."""
        if self._is_owner_open is False:
            return expected is None
        if self._woken is None or self._last is None:
            return False
        last = self._woken[1]
        return last > self._ended_at and (expected is None or expected > last)

    def _expected(self) -> int | None:
        """Return when it is due if nothing has come since; `None`: not before something comes."""
        said, born = self._said, self._whole.born.created_at
        match said.since:
            case Since.BIRTH:
                return born + said.ms
            case Since.FACT:
                return said.at + said.ms
            case Since.END:
                return self._ended_at + said.ms
            case Since.TAKEN_BACK | Since.HELD:
                return min(born, self._ended_at)
            case Since.TIMERS:
                return min(self._timers, default=None)
            case _:
                return None
