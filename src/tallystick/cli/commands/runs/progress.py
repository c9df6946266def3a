"""Live progress of a run: on a terminal a page that keeps changing, elsewhere silence."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tallystick.cli.commands.runs.pages import clean
from tallystick.cli.render.output import tell
from tallystick.terminal import has_rich

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from tallystick.runs.log.fold import RunView
    from tallystick.runs.log.recorder import Listener, Recording

_RUNNING_MAX = 12


@contextmanager
def progress(*, quiet: bool) -> Iterator[Listener]:
    """Yield a listener that shows how a run gets on, on stderr, if a person is looking."""
    if quiet or not sys.stderr.isatty():
        yield _ignore
        return
    if not has_rich():
        yield _tell_moves
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield _RedrawnPage(live)


class _RedrawnPage:
    """A listener that redraws a page."""

    def __init__(self, live: Live) -> None:
        """Draw on this display."""
        self._live = live

    def __call__(self, recording: Recording) -> None:
        """Draw the page again."""
        self._live.update(page(recording.view), refresh=True)


def page(view: RunView) -> Table:
    """Return the state, the counts and the work that is going on."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    counts = Counter(item.status.value for item in view.items.values())
    table.add_row(
        Text(f"run {clean(view.run_id)}", style="bold"),
        Text(clean(view.state), style="bold cyan"),
        Text("  ".join(f"{count} {status}" for status, count in sorted(counts.items())), style="dim"),
    )
    going = [item for item in view.items.values() if item.status.value == "running"]
    for item in going[:_RUNNING_MAX]:
        table.add_row("", Text("▸ " + clean(item.worker), style="cyan"), Text(clean(item.scope_key)))
    if len(going) > _RUNNING_MAX:
        table.add_row("", Text(f"and {len(going) - _RUNNING_MAX} more", style="dim"), "")
    return table


def _ignore(_: Recording) -> None:
    """Show nothing."""


def _tell_moves(recording: Recording) -> None:
    """Write a line for every move of the run."""
    if any(kind.value == "RUN_STATE_CHANGED" for kind, _ in recording.facts):
        tell(clean(f"{recording.ts}  {recording.view.state}"))
