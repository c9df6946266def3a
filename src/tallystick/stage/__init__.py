"""Sequences and stages: numbered work that is computed in any order and committed in order.

    from tallystick.stage import Stage

    summary = Stage(digest, journal="digests.journal").run(paths)

`Stage` runs a function over an iterable, `Sequence` is the memory underneath it, `Batch` its numpy path
(the extra `stage`), `read_journal` and `audit` look at what a stage left behind.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.errors import CancelItem as CancelItem
    from tallystick.errors import SkipItem as SkipItem
    from tallystick.stage.diagnostics import Diagnostics as Diagnostics
    from tallystick.stage.events import EventKind as EventKind
    from tallystick.stage.events import Reclaimed as Reclaimed
    from tallystick.stage.events import SlotEvent as SlotEvent
    from tallystick.stage.heartbeat import tick as tick
    from tallystick.stage.journal_audit import Audit as Audit
    from tallystick.stage.journal_audit import audit as audit
    from tallystick.stage.journal_audit import read_journal as read_journal
    from tallystick.stage.outcome import CommitBatch as CommitBatch
    from tallystick.stage.outcome import Failure as Failure
    from tallystick.stage.outcome import Outcome as Outcome
    from tallystick.stage.policy import SlotPolicy as SlotPolicy
    from tallystick.stage.policy import StuckOffer as StuckOffer
    from tallystick.stage.sequence import Sequence as Sequence
    from tallystick.stage.sequence_batch import Batch as Batch
    from tallystick.stage.stage import Stage as Stage
    from tallystick.stage.summary import Summary as Summary
    from tallystick.stage.windows import WindowLimits as WindowLimits

# Each name is imported when it is first asked for: a Sequence needs neither numpy nor asyncio.
_HOMES = {
    "Audit": "tallystick.stage.journal_audit",
    "Batch": "tallystick.stage.sequence_batch",
    "CancelItem": "tallystick.errors",
    "CommitBatch": "tallystick.stage.outcome",
    "Diagnostics": "tallystick.stage.diagnostics",
    "EventKind": "tallystick.stage.events",
    "Failure": "tallystick.stage.outcome",
    "Outcome": "tallystick.stage.outcome",
    "Reclaimed": "tallystick.stage.events",
    "Sequence": "tallystick.stage.sequence",
    "SkipItem": "tallystick.errors",
    "SlotEvent": "tallystick.stage.events",
    "SlotPolicy": "tallystick.stage.policy",
    "Stage": "tallystick.stage.stage",
    "StuckOffer": "tallystick.stage.policy",
    "Summary": "tallystick.stage.summary",
    "WindowLimits": "tallystick.stage.windows",
    "audit": "tallystick.stage.journal_audit",
    "read_journal": "tallystick.stage.journal_audit",
    "tick": "tallystick.stage.heartbeat",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
