"""`tally list`: jobs, newest first, a page at a time; never their payloads."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from tallystick.app.jobs import TENANT_DEFAULT
from tallystick.cli.output import Ink, printable
from tallystick.cli.paging import Page, checked_cursor, page_options
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.wording import ago, instant, short
from tallystick.clock import SystemClock
from tallystick.core.lifecycles import JobState
from tallystick.store.api import JobRow

_STYLES = {JobState.SUCCEEDED: "green", JobState.FAILED_FINAL: "red", JobState.CANCELLED: "yellow"}

_EXAMPLES = """\b
Examples:
  tally list shop
  tally list --url sqlite:///shop.db --state FAILED_FINAL
  tally list shop --workflow checkout --limit 100 --json
  tally list shop --tag customer-42
"""


@click.command("list", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState], case_sensitive=False),
    metavar="STATE",
    help="Only jobs in this state, QUEUED or FAILED_FINAL for instance; may be given more than once.",
)
@click.option("--tag", metavar="TAG", help="Only jobs that were submitted with this tag.")
@page_options
@url_option
@json_option
def command(
    *,
    app: str | None,
    states: tuple[str, ...],
    workflow: str | None,
    tag: str | None,
    limit: int,
    after: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the jobs of a store, newest first.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        cursor = checked_cursor(store, after)
        rows = store.jobs(
            tenant_id=TENANT_DEFAULT, states=states, handler=workflow, after=cursor, limit=limit + 1, tag=tag
        )
    Page.of(rows, limit).show(summary, _table, nothing="no jobs", as_json=as_json)


def summary(row: JobRow) -> dict[str, object]:
    """Return a job as data, without what its user put in and got out."""
    return {
        "job_id": row.job_id,
        "state": row.state,
        "workflow": row.handler,
        "version": row.version,
        "queue": row.queue,
        "priority": row.priority,
        "tenant": row.tenant_id,
        "attempt": row.attempt,
        "hold": row.hold,
        "error_code": row.error_code,
        "created_at": instant(row.created_at),
        "ready_at": instant(row.ready_at),
        "deadline_at": instant(row.deadline_at),
        "completed_at": instant(row.completed_at),
    }


def name_of(row: JobRow) -> str:
    """Return the workflow of a job with its version."""
    return printable(f"{row.handler} {row.version}".rstrip())


def remark(row: JobRow, now: int) -> str:
    """Return what is worth knowing at a glance: held, failed, tried before, or not due yet."""
    if row.hold:
        return f"held: {row.hold}"
    if row.error_code:
        return short(row.error_code, 40)
    if row.ready_at is not None and row.ready_at > now:
        return f"due {ago(row.ready_at, now)}"
    return f"attempt {row.attempt}" if row.attempt > 1 else ""


def _table(rows: Sequence[JobRow]) -> list[str]:
    ink = Ink.for_stream(sys.stdout)
    now = SystemClock().wall_ms()
    lines = []
    cells = [
        (
            row.job_id,
            row.state,
            name_of(row),
            printable(row.queue),
            ago(row.created_at, now),
            remark(row, now),
        )
        for row in rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    for row, cell in zip(rows, cells, strict=True):
        style = _STYLES.get(JobState(row.state))
        styles = (("dim",), (style,) if style else (), ("bold", "cyan"), (), ("dim",), ("yellow",))
        padded = [
            ink(text.ljust(width), *paint) if text else " " * width
            for text, width, paint in zip(cell, widths, styles, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines
