"""`tally list`: jobs, newest first, a page at a time; never their payloads."""

from __future__ import annotations

import sys

import click

from tallystick.cli.output import Ink, printable, show, show_data, tell
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.wording import ago, instant, short
from tallystick.clock import SystemClock
from tallystick.core.lifecycles import JobState
from tallystick.core.limits import PAGE_ROWS_MAX
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
    help="Only jobs in this state; may be given more than once.",
)
@click.option("--workflow", metavar="NAME", help="Only jobs of this workflow.")
@click.option("--tag", metavar="TAG", help="Only jobs that were submitted with this tag.")
@click.option(
    "--limit", type=click.IntRange(1, PAGE_ROWS_MAX), default=20, show_default=True, help="How many."
)
@click.option("--after", metavar="JOB", help="The page after this job: the last one of the page before.")
@click.option("--tenant", metavar="NAME", default="default", show_default=True, help="Whose jobs.")
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
    tenant: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the jobs of a store, newest first.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        # One more than asked for tells whether there is another page.
        rows = store.jobs(
            tenant_id=tenant, states=states, handler=workflow, after=after, limit=limit + 1, tag=tag
        )
    page = rows[:limit]
    following = page[-1].job_id if len(rows) > limit else None
    if as_json:
        show_data({"jobs": [summary(row) for row in page], "next_after": following})
        return
    if not page:
        tell("no jobs")
        return
    show("\n".join(_table(page, Ink.for_stream(sys.stdout))))
    if following:
        tell(f"more: --after {following}")


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


def _table(rows: list[JobRow], ink: Ink) -> list[str]:
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
