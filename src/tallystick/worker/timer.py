"""A timer by two clocks: one that people can set, and one that they cannot."""

from __future__ import annotations

import math

from tallystick.clock import Clock


class Timer:
    """An instant on the wall clock, which is over when either clock says so."""

    def __init__(self, clock: Clock) -> None:
        """Begin with no instant."""
        self._clock = clock
        self._at: tuple[int, int] | None = None

    def set(self, wall_ms: int | None) -> None:
        """Wait for this instant, or for none."""
        clock = self._clock
        # In this order: a thread that has to wait between the two looks is late by one clock, and not early.
        now = clock.wall_ms()
        self._at = None if wall_ms is None else (wall_ms, clock.boot_ms() + wall_ms - now)

    def is_over(self) -> bool:
        """Tell whether the instant has come."""
        return self.left <= 0

    @property
    def left(self) -> float:
        """Return how many seconds are left by the clock that is ahead; without an instant, no end of them."""
        if self._at is None:
            return math.inf
        wall_ms, boot_ms = self._at
        return min(wall_ms - self._clock.wall_ms(), boot_ms - self._clock.boot_ms()) / 1000
