"""`tally list`: jobs, newest first, a page at a time; never their payloads."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from tallystick.app.replay.shown_values import PROGRESS
from tallystick.cli.place import json_option, looking, url_option, whole_id
from tallystick.cli.render.output import Ink, printable
from tallystick.cli.render.paging import Page, checked_cursor, one_tenant, page_options, tenants_of
from tallystick.cli.render.progress_bar import share
from tallystick.cli.render.wording import ago, instant, short, stored_value
from tallystick.clock import SystemClock
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.core.schedules.timetable import instant_ms, read_instant
from tallystick.errors import BadDuration
from tallystick.store.api import JobRow, Store
from tallystick.store.inspection import Narrowed, watched

_STYLES = {JobState.SUCCEEDED: "green", JobState.FAILED_FINAL: "red", JobState.CANCELLED: "yellow"}

_EXAMPLES = """\b
Examples:
  tally list shop
  tally list --url sqlite:///shop.db --state FAILED_FINAL
  tally list shop --workflow checkout --limit 100 --json
  tally list shop --tag customer-42
  tally list shop --tenant acme
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
@click.option("--roots", is_flag=True, help="Only jobs that no other job has started.")
@click.option("--parent", metavar="JOB", help="Only jobs that this one has started.")
@click.option(
    "--since", metavar="WHEN", help="Only jobs made since then: an instant, or 2h for two hours ago."
)
@click.option("--until", metavar="WHEN", help="Only jobs made before then.")
@page_options
@url_option
@json_option
def command(
    *,
    app: str | None,
    states: tuple[str, ...],
    tenant: str | None,
    workflow: str | None,
    tag: str | None,
    roots: bool,
    parent: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    after: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the jobs of a store, newest first.

    They are of all tenants, or of one with --tenant; the tenant of each is shown where there are several.
    The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        cursor = checked_cursor(store, after)
        about = {
            "tenant_id": one_tenant(tenant),
            "states": states,
            "handler": workflow,
            "after": cursor,
            "limit": limit + 1,
        }
        narrowed = Narrowed(
            roots, None if parent is None else whole_id(store, parent), when_ms(since), when_ms(until)
        )
        if narrowed == Narrowed():
            rows = store.jobs(tag=tag, **about)  # type: ignore[arg-type]  # as they are named
        elif tag is not None:
            raise click.UsageError("--tag stands alone: leave out --roots, --parent, --since and --until.")
        else:
            rows = watched(store).jobs_narrowed(narrowed, **about)  # type: ignore[arg-type]  # the same
        progress = progress_of(store, rows)

    def as_data(row: JobRow) -> dict[str, object]:
        return {**summary(row), "progress": progress.get(row.job_id)}

    def table(rows: Sequence[JobRow]) -> list[str]:
        return _table(rows, progress)

    Page.of(rows, limit).show(as_data, table, nothing="no jobs", as_json=as_json)


def when_ms(text: str | None) -> int | None:
    """Return an instant that was written as one, or as how long ago it is."""
    if text is None:
        return None
    try:
        return SystemClock().wall_ms() - duration_ms(text)
    except BadDuration:
        return instant_ms(read_instant(text))


def progress_of(store: Store, rows: Sequence[JobRow]) -> dict[str, object]:
    """Return how far jobs say that they are, by their identifiers."""
    shown = store.values([row.job_id for row in rows], PROGRESS) if rows else []
    return {value.job_id: stored_value(value.value) for value in shown}


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
        "tenant_id": row.tenant_id,
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


def _share_of(row: JobRow, progress: Mapping[str, object]) -> str:
    """Return how far a job is that has not ended."""
    return share(progress.get(row.job_id)) if row.completed_at is None else ""


def _table(rows: Sequence[JobRow], progress: Mapping[str, object]) -> list[str]:
    ink = Ink.for_stream(sys.stdout)
    now = SystemClock().wall_ms()
    lines, tenants = [], tenants_of(rows)
    cells = [
        (
            row.job_id,
            row.state,
            *tenant,
            name_of(row),
            printable(row.queue),
            ago(row.created_at, now),
            ", ".join(filter(None, (_share_of(row, progress), remark(row, now)))),
        )
        for row, tenant in zip(rows, tenants, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, cell in zip(rows, cells, strict=True):
        style = _STYLES.get(JobState(row.state))
        first = (("dim",), (style,) if style else (), *((),) * len(tenants[0]))
        styles = (*first, ("bold", "cyan"), (), ("dim",), ("yellow",))
        padded = [
            ink(text.ljust(width), *paint) if text else " " * width
            for text, width, paint in zip(cell, widths, styles, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines
