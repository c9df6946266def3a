"""The events of a Sequence: one terminal event per seq, and the facts on the way to it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tallystick.core.lifecycles import SlotState


class EventKind(StrEnum):
    """What happened to a slot."""

    TERMINAL = "TERMINAL"
    ATTEMPT_FAILED = "ATTEMPT_FAILED"
    OFFERED_AGAIN = "OFFERED_AGAIN"
    STALE = "STALE"


class SlotEvent(NamedTuple):
    """One fact about one slot; `state` is where the slot stood after it.

    `owner` and `attempt` are those of the report. An attempt that failed and is tried again is
    ATTEMPT_FAILED and never TERMINAL: the terminal event of a seq is emitted exactly once.
    """

    kind: EventKind
    seq: int
    attempt: int
    owner: str
    state: SlotState
    now_ms: int
    error: str = ""


class ReclaimedSlot(NamedTuple):
    """What the reclaimer did to one slot: offered it again after `delay_ms`, or failed it for good."""

    seq: int
    attempt: int
    owner: str
    state: SlotState
    delay_ms: int
