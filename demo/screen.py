"""How the performance looks: live on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Final, Self

from demo.performance import Worker
from demo.sight import Job, Look
from tallystick.cli.render.output import Ink, show

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

GLYPHS: Final = "○◔◔◑◑◕●"
COLOURS: Final = ("cyan", "yellow", "blue", "green", "white", "cyan", "yellow", "blue")
COLUMNS: Final = 50
NOTES: Final = 8


class Lines:
    """For logs and pipes: a line when something happens, and one line of progress a second."""

    def __init__(self, ink: Ink) -> None:
        """Begin with nothing shown."""
        self._ink = ink
        self._next = 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, look: Look, workers: list[Worker]) -> None:
        """Write a line of progress when a second has passed."""
        if look.seconds < self._next:
            return
        self._next = look.seconds + 1.0
        total = len(look.jobs)
        filled = 30 * look.done // total
        held = " ".join(
            f"{worker.letter}:{'dead' if worker.killed else len(look.held_by(worker.owner))}"
            for worker in workers
        )
        bar = f"[{'#' * filled}{'.' * (30 - filled)}]"
        self.note(look.seconds, f"{bar} {look.done}/{total} done, leases {held}", "dim")

    def note(self, seconds: float, text: str, style: str = "") -> None:
        """Write what just happened."""
        show(f"  {self._ink(f'{seconds:5.2f} s', 'dim')}  {self._ink(text, *filter(None, [style]))}")
        sys.stdout.flush()


class Live:
    """For a terminal: every order as a circle that fills, in the colour of the worker that holds it."""

    def __init__(self) -> None:
        """Take the terminal over at `with`."""
        from rich.live import Live as RichLive  # noqa: PLC0415 (rich is an extra; a log does without it)

        self._notes: deque[tuple[float, str, str]] = deque(maxlen=NOTES)
        self._frame: tuple[Look, list[Worker]] | None = None
        self._live = RichLive(get_renderable=self._render, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.refresh()
        self._live.stop()

    def show(self, look: Look, workers: list[Worker]) -> None:
        """Draw one look."""
        self._frame = (look, workers)
        self._live.refresh()

    def note(self, seconds: float, text: str, style: str = "") -> None:
        """Add a line below the picture."""
        self._notes.append((seconds, text, style))
        self._live.refresh()

    def _render(self) -> RenderableType:
        from rich.console import Group  # noqa: PLC0415 (as above)
        from rich.text import Text  # noqa: PLC0415 (as above)

        parts: list[RenderableType] = []
        if self._frame is not None:
            look, workers = self._frame
            parts += [Text(), _circles(look, workers), Text(), _table(look, workers), Text()]
        for seconds, text, style in self._notes:
            line = Text(f"  {seconds:5.2f} s  ", style="dim")
            line.append(text, style=f"not dim {style}".strip())
            parts.append(line)
        return Group(*parts)


def audience(ink: Ink) -> Live | Lines:
    """Return the live screen where a person looks at a terminal and rich is installed, else plain lines."""
    if ink.wet and sys.stdout.isatty():
        try:
            return Live()
        except ImportError:
            return Lines(ink)
    return Lines(ink)


def _circles(look: Look, workers: list[Worker]) -> Text:
    from rich.text import Text  # noqa: PLC0415 (as above)

    colours = {
        worker.owner: "bold red" if worker.killed else COLOURS[index] for index, worker in enumerate(workers)
    }
    picture = Text("  ")
    for index, job in enumerate(look.jobs):
        if index and index % COLUMNS == 0:
            picture.append("\n  ")
        glyph, style = _glyph(job, colours)
        picture.append(glyph, style=style)
    picture.append("\n\n  ○ waiting  ◔ reserved  ◑ paid  ◕ shipped  ● done", style="dim")
    picture.append("   red: held by the dead", style="red")
    return picture


def _glyph(job: Job, colours: dict[str, str]) -> tuple[str, str]:
    if job.done:
        return "●", "green"
    if job.owner is None:
        return GLYPHS[job.steps], "bold white" if job.attempt else "dim"
    return GLYPHS[job.steps], colours.get(job.owner, "red")


def _table(look: Look, workers: list[Worker]) -> Table:
    from rich.progress_bar import ProgressBar  # noqa: PLC0415 (as above)
    from rich.table import Table  # noqa: PLC0415 (as above)
    from rich.text import Text  # noqa: PLC0415 (as above)

    table = Table.grid(padding=(0, 2))
    for index, worker in enumerate(workers):
        held = len(look.held_by(worker.owner))
        colour = "red" if worker.killed else COLOURS[index]
        state = "killed" if worker.killed else "works"
        table.add_row(
            Text(f"  worker {worker.letter}", style=f"bold {colour}"),
            Text(f"pid {worker.pid}", style="dim"),
            Text(state, style=colour),
            Text(f"{'▮' * held:8} {held} leases", style=colour),
            Text(f"{look.done_by.get(worker.owner, 0)} done", style="green"),
        )
    bar = ProgressBar(total=len(look.jobs), completed=look.done, width=24)
    table.add_row(
        Text("  orders", style="bold"),
        Text(f"{look.seconds:4.1f} s", style="dim"),
        Text(""),
        bar,
        Text(f"{look.done} of {len(look.jobs)}", style="bold green"),
    )
    return table
