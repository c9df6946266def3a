"""Where a batch may die: before and after each kind of write, with nothing of it durable."""

from __future__ import annotations

from typing import Final

from tallystick.store.crash_points import WRITES, around

AROUND: Final = around(
    "sqlite",
    {**WRITES, "tx": "user transactions", "stale_report": "refused reports"},
    "a batch is open and is about to write its {what}",
    "a batch has written its {what} and has not committed",
)
