"""`tally schedules`: what becomes a job by the clock; look, add, pause, resume, trigger, backfill, remove."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from tallystick.app.api.tally import Tally
from tallystick.app.scheduling.plans import ScheduleView
from tallystick.cli.group import ListingGroup
from tallystick.cli.place import acting, by_option, json_option, store_options, url_option
from tallystick.cli.render.output import aligned, show, show_data, tell
from tallystick.core.schedules.rows import Missed, Overlap
from tallystick.core.schedules.timetable import instant_ms, read_instant, timetable_of
from tallystick.defaults import TENANT

_EXAMPLES = """\b
Examples:
  tally schedules list shop --json
  tally schedules add shop:report nightly "0 3 * * *" --tz Europe/Berlin
  tally schedules add shop:report often "every 15m" --overlap skip
  tally schedules pause nightly shop
  tally schedules backfill nightly 2027-01-01T00:00Z 2027-01-08T00:00Z shop
"""


@click.group("schedules", cls=ListingGroup, epilog=_EXAMPLES)
def command() -> None:
    """Show and change the schedules of a store.

    The store is that of APP, of --url, or of the variable TALLY_URL.
    """


@command.command("list")
@store_options
def show_all(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Show all schedules: when each ticks, next and last, and whether it is paused or held."""
    with acting(app, url) as tally:
        views = tally.schedules.all()
    if as_json:
        show_data([_data(view) for view in views])
    else:
        show("\n".join(_table(views)) if views else "no schedules")


@command.command("add")
@click.argument("workflow", metavar="APP:WORKFLOW")
@click.argument("schedule")
@click.argument("when")
@click.argument("words", metavar="[ARGS_JSON | KEY=VALUE...]", nargs=-1)
@click.option(
    "--tz", default="UTC", show_default=True, metavar="ZONE", help="Whose clocks a cron expression means."
)
@click.option(
    "--missed",
    type=click.Choice([each.value for each in Missed]),
    default=Missed.LAST.value,
    show_default=True,
)
@click.option(
    "--overlap",
    type=click.Choice([each.value for each in Overlap]),
    default=Overlap.ALLOW.value,
    show_default=True,
)
@click.option(
    "--jitter", default="0s", show_default=True, metavar="DURATION", help="Spread the ticks over this time."
)
@click.option("--tenant", metavar="TENANT", help=f"Whose jobs the ticks make.  [default: {TENANT}]")
@by_option
@url_option
@json_option
def add(
    *,
    workflow: str,
    schedule: str,
    when: str,
    words: tuple[str, ...],
    tenant: str | None,
    by: str,
    url: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (as declared above, one by one)
) -> None:
    """Add or change a schedule; WHEN is a cron expression, "every 15m" or an instant that is to come.

    One that the program declares is as declared again when a worker of it starts next.
    """
    from tallystick.cli.commands.jobs.submit import read_arguments
    from tallystick.cli.loading import load_workflow

    timetable_of(when, options["tz"])
    loaded, found = load_workflow(workflow, None)
    args, kwargs = read_arguments(found, words)
    if url is not None:
        loaded.app.bind(url)
    try:
        if schedule in loaded.app.declared_schedules or _is_declared(loaded.app, schedule):
            _warn(schedule)
        found = found if tenant is None else found.opts(tenant=tenant)
        view = loaded.app.schedules.add(schedule, found, when, args=args, kwargs=kwargs, by=by, **options)
    finally:
        loaded.app.close()
    _say(view, as_json=as_json)


@command.command("pause")
@click.argument("schedule")
@by_option
@store_options
def pause(*, schedule: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Let no tick become a job until the schedule is resumed."""
    with acting(app, url) as tally:
        _say(tally.schedules.pause(schedule, by=by), as_json=as_json)


@command.command("resume")
@click.argument("schedule")
@by_option
@store_options
def resume(*, schedule: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Go on with the next tick; what was due during the pause is not made up for."""
    with acting(app, url) as tally:
        _say(tally.schedules.resume(schedule, by=by), as_json=as_json)


@command.command("trigger")
@click.argument("schedule")
@by_option
@store_options
def trigger(*, schedule: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Make a job now, beside the timetable, and print its id."""
    with acting(app, url) as tally:
        job = tally.schedules.trigger(schedule, by=by)
    show_data({"job_id": job.id}) if as_json else show(job.id)


@command.command("backfill")
@click.argument("schedule")
@click.argument("since")
@click.argument("until")
@by_option
@store_options
def backfill(
    *, schedule: str, since: str, until: str, app: str | None, by: str, url: str | None, as_json: bool
) -> None:
    """Make a job of each tick from SINCE on and before UNTIL that has none, and print their ids."""
    first, end = read_instant(since), read_instant(until)
    if instant_ms(first) >= instant_ms(end):
        raise click.UsageError(f"SINCE {since} is not before UNTIL {until}.")
    with acting(app, url) as tally:
        jobs = tally.schedules.backfill(schedule, first, end, by=by)
    if as_json:
        show_data([{"job_id": job.id, "created": job.created} for job in jobs])
    else:
        show("\n".join(f"{job.id}{'' if job.created else '  was there'}" for job in jobs) or "no ticks")


@command.command("remove")
@click.argument("schedule")
@by_option
@store_options
def remove(*, schedule: str, app: str | None, by: str, url: str | None, as_json: bool) -> None:
    """Remove a schedule; its jobs stay. One that a program declares comes back when its worker starts."""
    with acting(app, url) as tally:
        if _is_declared(tally, schedule):
            _warn(schedule)
        tally.schedules.remove(schedule, by=by)
    show_data({"id": schedule, "removed": True}) if as_json else show("removed")


def _is_declared(tally: Tally, schedule: str) -> bool:
    return any(view.declared for view in tally.schedules.all() if view.id == schedule)


def _warn(schedule: str) -> None:
    tell(f"warning: {schedule} is declared by the program; its next start restores it")


def _say(view: ScheduleView, *, as_json: bool) -> None:
    show_data(_data(view)) if as_json else show("\n".join(_table([view])))


def _data(view: ScheduleView) -> dict[str, object]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in view._asdict().items()
    }


def _table(views: Sequence[ScheduleView]) -> list[str]:
    rows = [(view.id, _whose(view), view.when, _next(view), _last(view)) for view in views]
    return aligned(rows)


def _whose(view: ScheduleView) -> str:
    return view.workflow if view.tenant == TENANT else f"{view.workflow} of {view.tenant}"


def _next(view: ScheduleView) -> str:
    if view.paused_by is not None:
        return f"paused by {view.paused_by}"
    if view.hold_reason is not None:
        return f"held: {view.hold_reason}"
    return "over" if view.next_at is None else f"next {view.next_at.isoformat()}"


def _last(view: ScheduleView) -> str:
    return "never ran" if view.last_at is None else f"last {view.last_at.isoformat()} {view.last_job}"
