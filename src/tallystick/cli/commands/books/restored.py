"""`tally restored`: say that a store was restored from a copy, so that nothing in it goes on by itself."""

from __future__ import annotations

import click

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import count
from tallystick.store.sql.restoring import hold_restored

_EXAMPLES = """\b
Examples:
  tally restored shop
  tally restored --url postgresql://localhost/shop --json
"""


@click.command("restored", epilog=_EXAMPLES)
@click.argument("app", required=False)
@url_option
@json_option
def command(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Hold every unfinished job as RESTORED, and pause every schedule, until a person has looked.

    Say it before a worker starts on a database that was restored by pg_restore, or on a file that was copied
    by other means than `tally backup`. `tally resume --restored` lets both go on. The store is that of
    APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        held, schedules = hold_restored(store)
    answer(
        f"{count(held, 'job')} held and {count(schedules, 'schedule')} paused; "
        "look, then tally resume --restored",
        {"held": held, "schedules_paused": schedules},
        as_json=as_json,
    )
