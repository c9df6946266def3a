"""What became of an item, and the contiguous run of outcomes that is committed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tallystick.core.lifecycles import SlotState

T = TypeVar("T")

SUCCESS: Final = SlotState.TERMINAL_SUCCESS
SKIP: Final = SlotState.TERMINAL_SKIP
FAIL: Final = SlotState.TERMINAL_FAIL
CANCEL: Final = SlotState.TERMINAL_CANCEL


class ItemFailure(NamedTuple):
    """Why an item failed, was skipped or cancelled: data, never an exception brought back to life."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The one outcome of one seq. `value` is there after a success, `failure` after everything else.

    With a journal the value is what JSON makes of it (a tuple is a list), now and when it is read again.
    """

    seq: int
    item: Any
    state: SlotState
    value: T | None
    failure: ItemFailure | None
    attempts: int

    @property
    def ok(self) -> bool:
        """Tell whether the item succeeded."""
        return self.state is SUCCESS


@dataclass(frozen=True, slots=True)
class CommitBatch(Generic[T]):
    """Consecutive outcomes that are committed together.

    `redelivered` is True after a crash, for the one batch of which it is unknown whether its commit
    function had returned: it has the same first seq, the same members and the same values as before.
    """

    first: int
    outcomes: tuple[Outcome[T], ...]
    redelivered: bool = False

    @property
    def end(self) -> int:
        """Return the seq after the last one of the batch."""
        return self.first + len(self.outcomes)


class Result(NamedTuple):
    """What a worker reports about one attempt; `raw` is the value as JSON where a journal will keep it."""

    state: SlotState
    value: Any = None
    raw: bytes | None = None
    size_bytes: int = 0
    failure: ItemFailure | None = None
    error_names: tuple[str, ...] = ()
