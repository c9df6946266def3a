"""`tally dead`: the jobs that have failed and were not retried."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from tallystick.cli.commands.jobs.list import name_of, summary
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import Ink, printable
from tallystick.cli.render.paging import Page, checked_cursor, one_tenant, page_options, tenants_of
from tallystick.cli.render.wording import ago, short
from tallystick.clock import SystemClock
from tallystick.store.api import JobRow

_EXAMPLES = """\b
Examples:
  tally dead shop
  tally dead shop --tenant acme
  tally dead --url sqlite:///shop.db --workflow checkout --limit 100 --json
"""


@click.command("dead", epilog=_EXAMPLES)
@click.argument("app", required=False)
@page_options
@url_option
@json_option
def command(
    *,
    app: str | None,
    tenant: str | None,
    workflow: str | None,
    limit: int,
    after: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show the dead letters, newest first: jobs that have failed and were not retried.

    They are of all tenants, or of one with --tenant; the tenant of each is shown where there are several.
    `tally retry` makes a new job of one. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        cursor = checked_cursor(store, after)
        rows = store.dead(tenant_id=one_tenant(tenant), handler=workflow, after=cursor, limit=limit + 1)
    Page.of(rows, limit).show(_as_data, _table, nothing="no dead letters", as_json=as_json)


def _as_data(row: JobRow) -> dict[str, object]:
    return {**summary(row), "error_message": row.error_message}


def _table(rows: Sequence[JobRow]) -> list[str]:
    ink = Ink.for_stream(sys.stdout)
    now = SystemClock().wall_ms()
    tenants = tenants_of(rows)
    named = max(len(name) for cell in tenants for name in cell) if tenants[0] else 0
    names = [name_of(row) for row in rows]
    failed = [ago(row.completed_at or row.updated_at, now) for row in rows]
    codes = [printable(row.error_code or "") for row in rows]
    widths = [max(map(len, column)) for column in (names, failed, codes)]
    return [
        "  ".join(
            (
                ink(row.job_id, "dim"),
                *(name.ljust(named) for name in tenant),
                ink(name.ljust(widths[0]), "bold", "cyan"),
                ink(when.ljust(widths[1]), "dim"),
                ink(code.ljust(widths[2]), "red"),
                short((row.error_message or "").split("\n")[0]),
            )
        ).rstrip()
        for row, tenant, name, when, code in zip(rows, tenants, names, failed, codes, strict=True)
    ]
