"""The only door to time.

Instants are whole milliseconds since 1970 (wall clock). Leases on one machine may be measured on
the boot clock, which no administrator and no leap second can move. Nothing else in the package asks
the operating system what time it is; code that decides takes `now` as an argument.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a program may know about time."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970; may jump in either direction."""
        ...

    def boot_ms(self) -> int:
        """Return milliseconds since this machine booted; never jumps, counts suspension too."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that is only good for measuring how long something took."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def wall_ms(self) -> int:
        """Return the wall clock in milliseconds."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Return the boot clock in milliseconds (the monotonic clock where there is no boot clock)."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds."""
        return time.monotonic()


class VirtualClock:
    """A clock that tests own: it stands still until it is moved."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, boot_ms: int = 1_000_000) -> None:
        """Start at the given instants."""
        self._wall_ms = wall_ms
        self._boot_ms = boot_ms

    def wall_ms(self) -> int:
        """Return the wall clock as it was last set."""
        return self._wall_ms

    def boot_ms(self) -> int:
        """Return the boot clock as it was last set."""
        return self._boot_ms

    def monotonic(self) -> float:
        """Return the boot clock in seconds."""
        return self._boot_ms / 1000

    def advance(self, ms: int) -> None:
        """Let time pass, on both clocks."""
        self._wall_ms += ms
        self._boot_ms += ms

    def jump_wall(self, ms: int) -> None:
        """Move only the wall clock, as an administrator or a leap second would."""
        self._wall_ms += ms


# macOS has no CLOCK_BOOTTIME; its monotonic clock also goes on during sleep.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
