"""The places around every kind of write to the server."""

from __future__ import annotations

from typing import Final

from tallystick.store.crash_points import WRITES, around

AROUND: Final = around(
    "postgres",
    WRITES,
    "a batch is about to send its {what}",
    "a batch has sent its {what} and has not committed",
)
