"""How long a stopping worker waits for its jobs: one grace period in two parts."""

from __future__ import annotations

from typing import Final

from tallystick.clock import SystemClock

# Which part of the grace is kept for functions that are told to unwind.
_UNWINDING_SHARE: Final = 0.2
_UNWINDING_SECONDS_MAX: Final = 1.0


class Grace:
    """First running jobs may come to their end; in the last part they unwind and give their leases back."""

    def __init__(self, ms: int) -> None:
        """Begin now, in real time: the program that stops a worker waits in real time too."""
        self._clock = SystemClock()
        seconds = ms / 1000
        # How many seconds unwinding has, whenever it begins: on a busy machine that may be late.
        self.to_unwind: Final = min(seconds * _UNWINDING_SHARE, _UNWINDING_SECONDS_MAX)
        self._unwind_at = self._clock.monotonic() + seconds - self.to_unwind

    @property
    def to_end(self) -> float:
        """Return how many seconds are left for jobs to come to their end."""
        return max(0.0, self._unwind_at - self._clock.monotonic())
