"""What earlier segments of a job have left, and what of it this segment has come to.

A call that was made before is recorded, or it is open: a wait, a sleep or a group that nothing has answered
yet, or a step that is to be tried again in a while. Code that is what it was comes to all of them, in their
order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from tallystick.core.limits import HELD_BACKOFF_MS_MAX
from tallystick.store.api import ClaimedJob, Record

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
