"""What a working command says to its reader: a person at a terminal, a log file, or a program.

At a terminal one line shows the progress and trouble scrolls past above it. Anywhere else there is a line
for each thing that happened and nothing in between. What cannot be written (the reader has gone, the disk is
full, the terminal was closed) is not said, and costs no job anything: the thread that speaks here holds a
lease.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TextIO

from tallystick.cli.render.output import Ink, printable
from tallystick.cli.render.wording import count
from tallystick.clock import SystemClock
from tallystick.terminal import UNWRITABLE, Rate, StatusLine, has_rich

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

# Said only when everything is wanted.
QUIET: Final = frozenset({"done", "turned", "waits", "woken"})
_STYLES: Final = {"failed": "red", "died": "red", "held": "yellow", "warning": "yellow", "stopping": "cyan"}
_RATE_SECONDS: Final = 2.0


class Progress(NamedTuple):
    """How far the work is."""

    running: int = 0
    done: int = 0
    failed: int = 0

    def __str__(self) -> str:
        failed = f" · {self.failed:,} failed" if self.failed else ""
        return f"{self.running:,} running · {self.done:,} done{failed}"


class WorkReporter:
    """Lines on stderr, one for each event. Its methods may be called from any thread."""

    def __init__(self, *, verbose: bool = False) -> None:
        """Say everything when verbose."""
        self.verbose = verbose
        self.reader_gone = False
        self._quiet = frozenset[str]() if verbose else QUIET
        self._lock = threading.Lock()
        self._ink = Ink.for_stream(sys.stderr)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def says(self, kind: str) -> bool:
        """Tell whether events of this kind are said at all."""
        return kind not in self._quiet

    def event(self, kind: str, words: str, **fields: object) -> None:
        """Say that something happened."""
        if not self.says(kind):
            return
        text = "\n".join(map(printable, words.split("\n")))
        with self._lock, suppress(*UNWRITABLE):
            self._line(self._ink(text, _STYLES[kind]) if kind in _STYLES else text, fields)

    def progress(self, progress: Progress) -> None:
        """Show how far the work is; called often."""

    def _line(self, text: str, _fields: dict[str, object]) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class JsonLines(WorkReporter):
    """One JSON object per line, for programs."""

    def __init__(self, stream: TextIO, *, verbose: bool = False) -> None:
        """Write to the stream."""
        super().__init__(verbose=verbose)
        self._stream = stream
        self._last = Progress()

    def event(self, kind: str, words: str, **fields: object) -> None:
        """Write the event and its fields.

        A reader that goes away is noted, because there is no reader to serve any more.
        """
        if not self.says(kind) or self.reader_gone:
            return
        line = json.dumps({"event": kind, "message": words, **fields}, default=str)
        with self._lock, suppress(*UNWRITABLE):
            try:
                self._stream.write(f"{line}\n")
                self._stream.flush()
            except BrokenPipeError:
                self.reader_gone = True

    def progress(self, progress: Progress) -> None:
        """Write the counts when they have changed."""
        if progress != self._last:
            self._last = progress
            self.event("progress", str(progress), **progress._asdict())


class Terminal(WorkReporter):
    """A line at the bottom that is written again and again; the plain way."""

    def __init__(self, *, verbose: bool = False) -> None:
        """Measure from now on."""
        super().__init__(verbose=verbose)
        self._rate = JobRate()
        self._bottom = StatusLine(sys.stderr)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave an empty line."""
        with self._lock:
            self._bottom.show("")

    def progress(self, progress: Progress) -> None:
        """Write the line again."""
        text = f"{self._rate.of(progress):,.1f} jobs/s · {progress}"
        with self._lock:
            self._bottom.show(self._ink(text, "dim"))

    def _line(self, text: str, _fields: dict[str, object]) -> None:
        self._bottom.show(f"{text}\n")


class RichTerminal(WorkReporter):
    """The same with rich, which also knows how wide the terminal is."""

    def __init__(self, *, verbose: bool = False) -> None:
        """Prepare the line."""
        from rich.console import Console

        super().__init__(verbose=verbose)
        self._rate = JobRate()
        self._console: Console = Console(stderr=True, highlight=False)
        self._status: Status = self._console.status("starting", spinner="dots")

    def __enter__(self) -> Self:
        """Show the line."""
        with suppress(*UNWRITABLE):
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away."""
        with suppress(*UNWRITABLE):
            self._status.stop()

    def progress(self, progress: Progress) -> None:
        """Show the counts."""
        with suppress(*UNWRITABLE):
            self._status.update(f"[bold]{self._rate.of(progress):,.1f}[/bold] jobs/s · {progress}")

    def event(self, kind: str, words: str, **_fields: object) -> None:
        """Print above the line."""
        if self.says(kind):
            text = "\n".join(map(printable, words.split("\n")))
            with suppress(*UNWRITABLE):
                self._console.print(text, style=_STYLES.get(kind), markup=False, soft_wrap=True)


class JobRate:
    """How many jobs end per second, over the last moments."""

    def __init__(self) -> None:
        """Begin now."""
        self._clock = SystemClock()
        self._rate = Rate(_RATE_SECONDS, self._clock.monotonic())

    def of(self, progress: Progress) -> float:
        """Take note of the progress and return the rate."""
        self._rate.mark(progress.done + progress.failed, self._clock.monotonic())
        return self._rate.per_second


def reporter_for(*, as_json: bool, verbose: bool) -> WorkReporter:
    """Return the reporter for the reader of this command."""
    if as_json:
        return JsonLines(sys.stdout, verbose=verbose)
    if not sys.stderr.isatty():
        return WorkReporter(verbose=verbose)
    return RichTerminal(verbose=verbose) if has_rich() else Terminal(verbose=verbose)


def summary(progress: Progress) -> str:
    """Return what was done, at the end."""
    failed = f", {progress.failed:,} of them failed" if progress.failed else ""
    return f"{count(progress.done + progress.failed, 'job')} ended here{failed}"
