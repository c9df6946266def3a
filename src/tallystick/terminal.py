"""Progress on a terminal: a line that is written over itself, and the rate that it shows."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from importlib.util import find_spec
from typing import Final, TextIO

UNWRITABLE: Final = (OSError, ValueError)
"""What a stream raises that is full, broken, closed, or cannot encode: no reason to stop working."""

_START_OF_LINE: Final = "\r\x1b[K"


def has_rich() -> bool:
    """Tell whether the package rich is installed, which draws better than we do."""
    return find_spec("rich") is not None


class Rate:
    """How fast a count grows, over the last seconds."""

    def __init__(self, seconds: float, now: float, count: int = 0) -> None:
        """Measure over this many seconds, from `count` on."""
        self._seconds = seconds
        self._marks = deque([(now, count)])

    def mark(self, count: int, now: float) -> None:
        """Take note of the count at this moment."""
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[0][0] > self._seconds:
            self._marks.popleft()

    @property
    def per_second(self) -> float:
        """Return by how much the count grew per second.

        >>> rate = Rate(10.0, now=0.0)
        >>> rate.mark(50, now=2.0)
        >>> rate.per_second
        25.0
        """
        (began, before), (ended, after) = self._marks[0], self._marks[-1]
        return (after - before) / (ended - began) if ended > began else 0.0


class StatusLine:
    """The last line of a terminal, written again and again; what cannot be written is left out."""

    def __init__(self, stream: TextIO) -> None:
        """Write to this stream."""
        self._stream = stream

    def show(self, text: str) -> None:
        """Replace the line by this text; a line feed at its end keeps it on the screen for good."""
        with suppress(*UNWRITABLE):
            self._stream.write(f"{_START_OF_LINE}{text}")
            self._stream.flush()
