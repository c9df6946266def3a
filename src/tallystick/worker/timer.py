"""A timer by two clocks: one that people can set, and one that they cannot."""

from __future__ import annotations

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
        self._at = None if wall_ms is None else (wall_ms, clock.boot_ms() + wall_ms - clock.wall_ms())

    def is_over(self) -> bool:
        """Tell whether the instant has come."""
        if self._at is None:
            return False
        wall_ms, boot_ms = self._at
        return self._clock.wall_ms() >= wall_ms or self._clock.boot_ms() >= boot_ms
