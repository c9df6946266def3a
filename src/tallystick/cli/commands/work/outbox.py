"""`tally outbox`: directives on their way to remote workers, how late they are, and what is dead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from tallystick.app.remote.redriving import redrive as redriven
from tallystick.cli.group import ListingGroup
from tallystick.cli.place import acting, json_option, looking, url_option
from tallystick.cli.render.output import Ink, printable, show, show_data, tell
from tallystick.cli.render.wording import ago, instant, short, span
from tallystick.core.limits import PAGE_ROWS_MAX
from tallystick.core.remote.rows import OutboxLag, OutboxRow

_EXAMPLES = """\b
Examples:
  tally outbox list shop --service warehouse
  tally outbox list shop --dead --json
  tally outbox lag shop
  tally outbox redrive '01a1e109-dad7-70e7-b72a-a7770e0c41df:0/pick#1:1' shop
"""


@click.group("outbox", cls=ListingGroup, epilog=_EXAMPLES)
def command() -> None:
    """Show the directives that are to go out to remote workers, and redrive those that could not.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """


def _everywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every command about the outbox has."""
    tenant = click.option("--tenant", metavar="TENANT", help="Only what belongs to this tenant; else all.")
    for add in (json_option, url_option, tenant, click.argument("app", required=False)):
        function = add(function)
    return function


@command.command("list", epilog=_EXAMPLES)
@_everywhere
@click.option("--dead", is_flag=True, help="Only what could not be published; else what is not out yet.")
@click.option("--service", metavar="SERVICE", help="Only what this service is asked for.")
@click.option(
    "--after", metavar="ID", default="", help="The page after this one: the last of the page before."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, PAGE_ROWS_MAX),
    default=20,
    show_default=True,
    help="How many.",
)
def show_some(
    *,
    app: str | None,
    dead: bool,
    service: str | None,
    tenant: str | None,
    after: str,
    limit: int,
    url: str | None,
    as_json: bool,
) -> None:
    """Show directives that are not out yet, or (--dead) that could not be published, the oldest job first."""
    with looking(app, url) as store:
        inspection, now = store.inspect(), store.now()
        look = inspection.dead_directives if dead else inspection.waiting_directives
        rows = look(tenant, service, after=after, limit=limit + 1)
    page = rows[:limit]
    next_after = page[-1].outbox_id if len(rows) > limit else None
    if as_json:
        show_data({"directives": [_as_data(row) for row in page], "next_after": next_after})
    elif not page:
        tell("no dead letters in the outbox" if dead else "nothing waits in the outbox")
    else:
        show("\n".join(_table(page, now)))
        if next_after:
            tell(f"more: --after {next_after}")


@command.command("lag", epilog=_EXAMPLES)
@_everywhere
def show_lag(*, app: str | None, tenant: str | None, url: str | None, as_json: bool) -> None:
    """Show for each service how many directives wait, how long the first has, and how many are dead."""
    with looking(app, url) as store:
        rows, now = store.inspect().outbox_lag(tenant), store.now()
    if as_json:
        show_data([_lag_data(row, now) for row in rows])
    elif not rows:
        tell("the outbox is empty")
    else:
        show("\n".join(_lag_line(row, now) for row in rows))


@command.command("redrive", epilog=_EXAMPLES)
@click.argument("directive")
@_everywhere
def redrive(*, directive: str, app: str | None, tenant: str | None, url: str | None, as_json: bool) -> None:
    """Fork the job of a directive that could not be published, at its step, and print the new job's id.

    A job that has failed with that step is retried: the new one takes its place. Said again, it is the same
    new job. A directive that is out, or not out yet, is exit code 4.
    """
    with acting(app, url) as tally:
        job = redriven(tally, directive, tenant)
    if as_json:
        show_data({"job_id": job.id, "directive": directive, "created": job.created})
        return
    if not job.created:
        tell(f"directive {short(directive)} was redriven before")
    show(job.id)


def _as_data(row: OutboxRow) -> dict[str, object]:
    return {
        "id": row.outbox_id,
        "jobId": row.job_id,
        "stepId": row.step_id,
        "attempt_no": row.attempt_no,
        "tenant": row.tenant_id,
        "service": row.service,
        "via": row.via,
        "state": row.state,
        "tries": row.tries,
        "created_at": instant(row.created_at),
        "next_try_at": instant(row.next_try_at) if row.reason is None else None,
        "reason": row.reason,
    }


def _table(rows: Sequence[OutboxRow], now: int) -> list[str]:
    ink = Ink.for_stream(sys.stdout)
    services = [printable(f"{row.service} ({row.via})") for row in rows]
    ages = [ago(row.created_at, now) for row in rows]
    widths = [max(map(len, column)) for column in (services, ages)]
    return [
        "  ".join(
            (
                ink(printable(row.outbox_id), "dim"),
                ink(service.ljust(widths[0]), "bold", "cyan"),
                printable(row.tenant_id),
                ink(age.ljust(widths[1]), "dim"),
                _stands(row, now),
            )
        ).rstrip()
        for row, service, age in zip(rows, services, ages, strict=True)
    ]


def _stands(row: OutboxRow, now: int) -> str:
    """Say what a directive waits for, or why it never went."""
    tried = "after 1 try" if row.tries == 1 else f"after {row.tries} tries"
    if row.reason is not None:
        return f"dead {tried}: {short(row.reason)}"
    if row.is_pulled:
        return "waits for a remote worker"
    if row.next_try_at <= now:
        return "due" if row.tries == 0 else f"due again {tried}"
    return f"next try {ago(row.next_try_at, now)} {tried}"


def _lag_ms(row: OutboxLag, now: int) -> int | None:
    return None if row.since is None else max(0, now - row.since)


def _lag_data(row: OutboxLag, now: int) -> dict[str, object]:
    about = {"service": row.service, "via": row.via, "waiting": row.waiting}
    return {**about, "lag_ms": _lag_ms(row, now), "dead": row.dead}


def _lag_line(row: OutboxLag, now: int) -> str:
    lag = _lag_ms(row, now)
    late = "" if lag is None else f", the first for {span(lag)}"
    dead = f", {row.dead:,} dead" if row.dead else ""
    return printable(f"{row.service} ({row.via}): {row.waiting:,} waiting{late}{dead}")
