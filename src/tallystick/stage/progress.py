"""A progress line with rate and time left: rich's bar where it is installed, plain text elsewhere.

Only a terminal is drawn on. What is shown is what is committed; the rate is that of the last seconds.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, Protocol, TextIO

from tallystick.clock import Clock
from tallystick.terminal import Rate, StatusLine, has_rich

DRAW_SECONDS: Final = 0.1
RATE_SECONDS: Final = 10.0
BAR_CHARS: Final = 24


class Meter:
    """How fast the committed count grows, and how long the rest will take at that rate."""

    def __init__(self, total: int | None, done: int, now: float) -> None:
        self.total = total
        self.done = done
        self._rate = Rate(RATE_SECONDS, now, done)

    def mark(self, done: int, now: float) -> None:
        """Take note of the count at this moment."""
        self.done = done
        self._rate.mark(done, now)

    @property
    def rate(self) -> float:
        """Return items per second over the last seconds."""
        return self._rate.per_second

    @property
    def seconds_left(self) -> float | None:
        """Return how long the rest will take, or None while that is unknown."""
        if self.total is None or self.rate <= 0:
            return None
        return max(0, self.total - self.done) / self.rate


def plain_line(name: str, meter: Meter) -> str:
    """Return the progress as one line of text.

    >>> meter = Meter(200, 0, now=0.0)
    >>> meter.mark(50, now=1.0)
    >>> plain_line("hash", meter)
    'hash [######..................] 50/200  25%  50.0/s  ETA 0:03'
    """
    rate = f"{meter.rate:,.1f}/s"
    if meter.total is None:
        return f"{name} {meter.done} done  {rate}"
    part = min(1.0, meter.done / meter.total) if meter.total else 1.0
    filled = int(part * BAR_CHARS)
    bar = "#" * filled + "." * (BAR_CHARS - filled)
    left = meter.seconds_left
    return f"{name} [{bar}] {meter.done}/{meter.total}  {part:.0%}  {rate}  ETA {clock_text(left)}"


def clock_text(seconds: float | None) -> str:
    """Return a time left as people write it.

    >>> clock_text(None), clock_text(3.2), clock_text(3725)
    ('-:--', '0:03', '1:02:05')
    """
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ProgressDisplay(Protocol):
    """What the commit lane tells while it works."""

    def show(self, done: int) -> None:
        """Show that this many items are committed."""
        ...

    def close(self) -> None:
        """Leave the terminal as a person expects to find it."""
        ...


class NoProgress:
    """Shows nothing."""

    def show(self, done: int) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Leave nothing."""


class PlainProgress:
    """One line that is written over itself."""

    def __init__(self, name: str, meter: Meter, clock: Clock, stream: TextIO) -> None:
        self._name = name
        self._meter = meter
        self._clock = clock
        self._line = StatusLine(stream)
        self._drawn_at = -DRAW_SECONDS

    def show(self, done: int) -> None:
        """Draw the line, at most ten times per second."""
        now = self._clock.monotonic()
        if now - self._drawn_at < DRAW_SECONDS:
            self._meter.done = done
            return
        self._drawn_at = now
        self._meter.mark(done, now)
        self._line.show(plain_line(self._name, self._meter))

    def close(self) -> None:
        """Draw the last state and end the line."""
        self._meter.mark(self._meter.done, self._clock.monotonic())
        self._line.show(plain_line(self._name, self._meter) + "\n")


class RichProgress:
    """The bar of the rich package."""

    def __init__(self, rich: Any, name: str, total: int | None, done: int) -> None:  # noqa: ANN401 (a module has no better type)
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[rate]}"),
            rich.TimeRemainingColumn(),
        )
        console = importlib.import_module("rich.console").Console(stderr=True)
        self._bar = rich.Progress(*columns, console=console)
        self._line = self._bar.add_task(name, total=total, completed=done, rate="")
        self._bar.start()

    def show(self, done: int) -> None:
        """Hand the count to the bar, which draws at its own pace."""
        speed = self._bar.tasks[0].speed
        self._bar.update(self._line, completed=done, rate=f"{speed:,.1f}/s" if speed else "")

    def close(self) -> None:
        """Stop drawing."""
        self._bar.stop()


def progress_on(
    *,
    wanted: bool | None,
    name: str,
    total: int | None,
    done: int,
    clock: Clock,
    stream: TextIO | None = None,
) -> ProgressDisplay:
    """Return what to draw with: nothing unless `wanted`, or by default on a terminal."""
    stream = stream or sys.stderr
    is_terminal = stream is not None and stream.isatty()
    if stream is None or wanted is False or (wanted is None and not is_terminal):
        return NoProgress()
    if is_terminal and stream is sys.stderr and has_rich():
        return RichProgress(importlib.import_module("rich.progress"), name, total, done)
    return PlainProgress(name, Meter(total, done, clock.monotonic()), clock, stream)
