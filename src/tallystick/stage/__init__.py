"""Sequences and stages: numbered work that is computed in any order and committed in order.

    from tallystick.stage import Stage

    summary = Stage(digest, journal="digests.journal").run(paths)

`Stage` runs a function over an iterable. `Sequence` is the memory underneath it, and `SequenceBatch` does the
same for many items at once with numpy (the extra `stage`). `read_journal` and `audit` read a journal.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.core.retry import RetryPolicy as RetryPolicy
    from tallystick.errors import CancelItem as CancelItem
    from tallystick.errors import SkipItem as SkipItem
    from tallystick.stage.diagnostics import Diagnostics as Diagnostics
    from tallystick.stage.journal.audit import JournalAudit as JournalAudit
    from tallystick.stage.journal.audit import audit as audit
    from tallystick.stage.journal.audit import read_journal as read_journal
    from tallystick.stage.lanes.heartbeat import tick as tick
    from tallystick.stage.outcome import CommitBatch as CommitBatch
    from tallystick.stage.outcome import ItemFailure as ItemFailure
    from tallystick.stage.outcome import Outcome as Outcome
    from tallystick.stage.sequence.batch import SequenceBatch as SequenceBatch
    from tallystick.stage.sequence.events import EventKind as EventKind
    from tallystick.stage.sequence.events import ReclaimedSlot as ReclaimedSlot
    from tallystick.stage.sequence.events import SlotEvent as SlotEvent
    from tallystick.stage.sequence.policy import SlotPolicy as SlotPolicy
    from tallystick.stage.sequence.policy import StuckOffer as StuckOffer
    from tallystick.stage.sequence.sequence import Sequence as Sequence
    from tallystick.stage.stage import Stage as Stage
    from tallystick.stage.summary import Summary as Summary
    from tallystick.stage.windows import WindowLimits as WindowLimits

# Each name is imported when it is first asked for: a Sequence needs neither numpy nor asyncio.
_HOMES = {
    "CancelItem": "tallystick.errors",
    "CommitBatch": "tallystick.stage.outcome",
    "Diagnostics": "tallystick.stage.diagnostics",
    "EventKind": "tallystick.stage.sequence.events",
    "ItemFailure": "tallystick.stage.outcome",
    "JournalAudit": "tallystick.stage.journal.audit",
    "Outcome": "tallystick.stage.outcome",
    "ReclaimedSlot": "tallystick.stage.sequence.events",
    "RetryPolicy": "tallystick.core.retry",
    "Sequence": "tallystick.stage.sequence.sequence",
    "SequenceBatch": "tallystick.stage.sequence.batch",
    "SkipItem": "tallystick.errors",
    "SlotEvent": "tallystick.stage.sequence.events",
    "SlotPolicy": "tallystick.stage.sequence.policy",
    "Stage": "tallystick.stage.stage",
    "StuckOffer": "tallystick.stage.sequence.policy",
    "Summary": "tallystick.stage.summary",
    "WindowLimits": "tallystick.stage.windows",
    "audit": "tallystick.stage.journal.audit",
    "read_journal": "tallystick.stage.journal.audit",
    "tick": "tallystick.stage.lanes.heartbeat",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
