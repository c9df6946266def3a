"""A wall clock that runs ahead, for programs that need not wait out an hour."""

from __future__ import annotations

from tallystick.clock import SystemClock


class AheadClock:
    """The clocks of the machine, the wall clock ahead of it."""

    def __init__(self, ahead_ms: int) -> None:
        self._real, self._ahead_ms = SystemClock(), ahead_ms
        self.boot_ms, self.epoch, self.monotonic = self._real.boot_ms, self._real.epoch, self._real.monotonic

    def wall_ms(self) -> int:
        return self._real.wall_ms() + self._ahead_ms
