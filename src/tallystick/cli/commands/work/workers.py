"""`tally workers`: which workers a store has, since when, on what, and which were not heard of."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import Ink, printable, show, show_data
from tallystick.cli.render.wording import ago, instant
from tallystick.core.watching.rows import WorkerRow
from tallystick.store.inspection import watched

_WORKERS_MAX = 1_000

_EXAMPLES = """\b
Examples:
  tally workers shop
  tally workers --url postgresql://localhost/shop --json
"""


@click.command("workers", epilog=_EXAMPLES)
@click.argument("app", required=False)
@url_option
@json_option
def command(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Show the workers of a store; each says every 20 seconds that it lives.

    One that stopped as it should is not shown; one that was killed is shown for a day. The store is that of
    APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        workers, now = watched(store).workers(_WORKERS_MAX), store.now()
    if as_json:
        show_data([as_data(worker, now) for worker in workers])
    else:
        show("\n".join(table(workers, now, Ink.for_stream(sys.stdout))) if workers else "no workers")


def as_data(worker: WorkerRow, now: int) -> dict[str, object]:
    """Return a worker for programs."""
    return {
        **worker._asdict(),
        "queues": json.loads(worker.queues),
        "started_at": instant(worker.started_at),
        "heard_at": instant(worker.heard_at),
        "live": worker.is_live(now),
        "failing": worker.failing_roles,
    }


def trouble(worker: WorkerRow, now: int) -> str:
    """Return what is wrong with a worker in a few words, or nothing."""
    if not worker.is_live(now):
        return f"last heard of {ago(worker.heard_at, now)}"
    return f"fails: {', '.join(worker.failing_roles)}" if worker.failing_roles else ""


def table(workers: Sequence[WorkerRow], now: int, ink: Ink) -> list[str]:
    """Return workers for people, a line each."""
    cells = [
        (
            printable(f"{worker.host}/{worker.pid}"),
            f"{worker.running} of {worker.slots} running",
            printable(", ".join(json.loads(worker.queues))),
            f"version {printable(worker.version)}",
            f"began {ago(worker.started_at, now)}",
            trouble(worker, now),
        )
        for worker in workers
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    styles = (("bold",), (), ("cyan",), ("dim",), ("dim",), ("red",))
    return [
        "  ".join(
            ink(text.ljust(width), *style) if text else ""
            for text, width, style in zip(row, widths, styles, strict=True)
        ).rstrip()
        for row in cells
    ]
