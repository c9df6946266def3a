"""`tally dead`: the jobs that have failed and that nobody has retried."""

from __future__ import annotations

import sys

import click

from tallystick.cli.list import name_of, summary
from tallystick.cli.output import Ink, printable, show, show_data, tell
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.wording import ago, short
from tallystick.clock import SystemClock
from tallystick.core.limits import PAGE_ROWS_MAX
from tallystick.store.api import JobRow

_EXAMPLES = """\b
Examples:
  tally dead shop
  tally dead --url sqlite:///shop.db --workflow checkout --limit 100 --json
"""


@click.command("dead", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option("--workflow", metavar="NAME", help="Only jobs of this workflow.")
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
    workflow: str | None,
    limit: int,
    after: str | None,
    tenant: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the dead letters, newest first: jobs that have failed and were not retried.

    `tally retry` makes a new job of one. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        # One more than asked for tells whether there is another page.
        rows = store.dead(tenant_id=tenant, handler=workflow, after=after, limit=limit + 1)
    page = rows[:limit]
    following = page[-1].job_id if len(rows) > limit else None
    if as_json:
        jobs = [{**summary(row), "error_message": row.error_message} for row in page]
        show_data({"jobs": jobs, "next_after": following})
        return
    if not page:
        tell("no dead letters")
        return
    show("\n".join(_table(page, Ink.for_stream(sys.stdout))))
    if following:
        tell(f"more: --after {following}")


def _table(rows: list[JobRow], ink: Ink) -> list[str]:
    now = SystemClock().wall_ms()
    names = [name_of(row) for row in rows]
    failed = [ago(row.completed_at or row.updated_at, now) for row in rows]
    codes = [printable(row.error_code or "") for row in rows]
    widths = [max(map(len, column)) for column in (names, failed, codes)]
    return [
        "  ".join(
            (
                ink(row.job_id, "dim"),
                ink(name.ljust(widths[0]), "bold", "cyan"),
                ink(when.ljust(widths[1]), "dim"),
                ink(code.ljust(widths[2]), "red"),
                short((row.error_message or "").split("\n")[0]),
            )
        ).rstrip()
        for row, name, when, code in zip(rows, names, failed, codes, strict=True)
    ]
