"""Take in items: give each its key and its window, and skip those that have their outcome.

Items are never skipped by number alone: each is compared with the key that the journal holds for its seq,
so an input that changed since is refused instead of being committed under the wrong number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tallystick.core.lifecycles import SlotState
from tallystick.errors import JournalMismatch
from tallystick.stage.journal.format import Row
from tallystick.stage.journal.journal import Journal
from tallystick.stage.lanes.compute import NEEDS_JSON, NEEDS_KEY, digest_of, encode, key_of
from tallystick.stage.outcome import SUCCESS, CommitBatch, ItemFailure, Outcome
from tallystick.stage.windows import WindowPlan


class Admission(NamedTuple):
    """An item on its way in."""

    item: Any
    key: str
    window: int


class Intake:
    """Where items come in, one after the other in the order of their seqs."""

    def __init__(
        self,
        plan: WindowPlan,
        key: Callable[[Any], object] | None,
        journal: Journal | None,
        *,
        travels: bool = False,
    ) -> None:
        self._plan = plan
        # A key would be of no use for an item that has to get to another process.
        self._remedy = NEEDS_JSON if travels else NEEDS_KEY
        self._key = key
        self._journal = journal
        self._seq = 0
        self._first = journal.first if journal else 0
        self._known = journal.keys() if journal and journal.first else None
        self._doubtful: list[Any] = []

    @property
    def passing(self) -> bool:
        """Tell whether the next item has its outcome already."""
        return self._seq < self._first

    def pass_over(self, item: object) -> None:
        """Check the next item against the journal, and do not compute it."""
        seq, journal = self._seq, self._journal
        known = "" if self._known is None else next(self._known)
        if self._key_of(item) != known:
            raise JournalMismatch(
                f"the item at seq {seq} is not the one in the journal; resume with the same items in the "
                "same order, or begin a new journal",
                seq=seq,
            )
        self._plan.place(item)
        if journal and journal.in_doubt and seq >= journal.in_doubt.first:
            self._doubtful.append(item)
        self._seq += 1

    def check_all_passed(self) -> None:
        """Raise if the input ended before everything that the journal knows."""
        if self._known is not None:
            self._known.close()
        if self.passing:
            raise JournalMismatch(
                f"the journal has outcomes up to seq {self._first - 1} and the input ended after {self._seq} "
                "items; resume with the same items in the same order",
                items=self._seq,
                journal=self._first,
            )

    def describe(self, item: object) -> Admission:
        """Return the item with its key and its window."""
        key = self._key_of(item) if self._journal else ""
        self._seq += 1
        return Admission(item, key, self._plan.place(item))

    def doubtful_batch(self) -> CommitBatch[Any] | None:
        """Return the batch that must be handed to the commit function again, as it was."""
        batch = self._journal.in_doubt if self._journal else None
        if batch is None:
            return None
        outcomes = [
            _outcome(batch.first + index, item, row)
            for index, (item, row) in enumerate(zip(self._doubtful, batch.rows, strict=True))
        ]
        self._doubtful = []
        return CommitBatch(batch.first, tuple(outcomes), redelivered=True)

    def _key_of(self, item: object) -> str:
        if self._key is None:
            return key_of(item, self._remedy)
        return digest_of(encode(self._key(item), "key"))


def _outcome(seq: int, item: object, row: Row) -> Outcome[Any]:
    state, attempts, _, raw = row
    if state == SUCCESS:
        return Outcome(seq, item, SUCCESS, msgspec.json.decode(raw), None, attempts)
    failure = msgspec.json.decode(raw, type=ItemFailure | None)
    return Outcome(seq, item, SlotState(state), None, failure, attempts)
