"""The only door to time.

Instants are whole milliseconds since 1970 (wall clock). Leases on one machine may be measured on
the boot clock, which no administrator and no leap second can move. Nothing else in the package asks
the operating system what time it is; code that decides takes `now` as an argument.
"""

from __future__ import annotations

import asyncio
import threading
import time
from functools import cache
from pathlib import Path
from typing import Final, Protocol


class Clock(Protocol):
    """What a program may know about time."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970; may jump in either direction."""
        ...

    def boot_ms(self) -> int:
        """Return milliseconds since this machine booted; never jumps, counts suspension too."""
        ...

    def epoch(self) -> str:
        """Return the name of this boot: boot clocks of different boots cannot be compared."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that is only good for measuring how long something took."""
        ...

    def pause(self, ms: int, stop: threading.Event) -> bool:
        """Hold this thread for so long, or until it is told to stop; tell whether it was."""
        ...

    async def pause_aio(self, ms: int) -> None:
        """Hold this task for so long."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def wall_ms(self) -> int:
        """Return the wall clock in milliseconds."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Return the boot clock in milliseconds (the monotonic clock where there is no boot clock)."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def epoch(self) -> str:
        """Return the kernel's name of this boot, or, where there is none, the instant of the boot."""
        return _boot_name()

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds."""
        return time.monotonic()

    def pause(self, ms: int, stop: threading.Event) -> bool:
        """Sleep for so long, or until the event is set; tell whether it was."""
        return stop.wait(ms / 1000)

    async def pause_aio(self, ms: int) -> None:
        """Sleep for so long."""
        await asyncio.sleep(ms / 1000)


class VirtualClock:
    """A clock that tests own: it stands still until it is moved."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, boot_ms: int = 1_000_000) -> None:
        """Start at the given instants."""
        self._wall_ms = wall_ms
        self._boot_ms = boot_ms
        self._boots = 1

    def wall_ms(self) -> int:
        """Return the wall clock as it was last set."""
        return self._wall_ms

    def boot_ms(self) -> int:
        """Return the boot clock as it was last set."""
        return self._boot_ms

    def epoch(self) -> str:
        """Return a name that changes with every reboot."""
        return f"boot-{self._boots}"

    def monotonic(self) -> float:
        """Return the boot clock in seconds."""
        return self._boot_ms / 1000

    def pause(self, ms: int, stop: threading.Event) -> bool:
        """Let the time of a pause pass at once: no test has to sleep."""
        self.advance(ms)
        return stop.is_set()

    async def pause_aio(self, ms: int) -> None:
        """Let the time of a pause pass at once; other tasks have their turn first."""
        await asyncio.sleep(0)
        self.advance(ms)

    def advance(self, ms: int) -> None:
        """Let time pass, on both clocks."""
        self._wall_ms += ms
        self._boot_ms += ms

    def jump_wall(self, ms: int) -> None:
        """Move only the wall clock, as an administrator or a leap second would."""
        self._wall_ms += ms

    def reboot(self, boot_ms: int = 0) -> None:
        """Start the boot clock again, as a restart of the machine does."""
        self._boots += 1
        self._boot_ms = boot_ms


@cache
def _boot_name() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        # To the minute, because the two clocks are not read at the same instant.
        return f"since-{(time.time() - time.monotonic()) // 60:.0f}"


# macOS has no CLOCK_BOOTTIME; its monotonic clock also goes on during sleep.
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
