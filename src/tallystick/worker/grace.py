"""How long a worker that is to stop still waits: one grace, in two parts."""

from __future__ import annotations

from typing import Final

from tallystick.clock import SystemClock

# Which part of the grace is kept for those who are told to unwind.
_UNWINDING_SHARE: Final = 0.2
_UNWINDING_SECONDS_MAX: Final = 1.0


class Grace:
    """First running jobs may come to their end; in the last part they unwind and give their leases back."""

    def __init__(self, ms: int) -> None:
        """Begin now, in real time: whoever stops a process waits in real time too."""
        self._clock = SystemClock()
        seconds = ms / 1000
        self._over_at = self._clock.monotonic() + seconds
        self._unwind_at = self._over_at - min(seconds * _UNWINDING_SHARE, _UNWINDING_SECONDS_MAX)

    @property
    def to_end(self) -> float:
        """Return how many seconds are left for jobs to come to their end."""
        return max(0.0, self._unwind_at - self._clock.monotonic())

    @property
    def to_unwind(self) -> float:
        """Return how many seconds are left in all."""
        return max(0.0, self._over_at - self._clock.monotonic())
