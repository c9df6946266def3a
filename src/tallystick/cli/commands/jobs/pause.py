"""`tally pause`: keep workers from claiming a job until it is resumed."""

from __future__ import annotations

from typing import Any

import click

from tallystick.cli.commands.jobs.many import many_options, speak_to_many
from tallystick.cli.place import acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import short
from tallystick.core.verbs.holds import Held
from tallystick.errors import JobEnded

_EXAMPLES = """\b
Examples:
  tally pause 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally pause 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --why "the warehouse is moving"
  tally pause 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
  tally pause shop --where workflow=checkout --older 2d --yes
"""


@click.command("pause", epilog=_EXAMPLES)
@click.argument("job", required=False)
@click.argument("app", required=False)
@click.option(
    "--why", metavar="TEXT", default="paused by hand", show_default=True, help="What people are to read."
)
@many_options
@by_option
@url_option
@json_option
def command(
    *,
    job: str | None,
    app: str | None,
    why: str,
    by: str,
    url: str | None,
    as_json: bool,
    **which: Any,  # noqa: ANN401 (as `many_options` declares)
) -> None:
    """Hold a job until it is resumed, and say what that does now.

    A job that runs stops at its next call; one that waits keeps what arrives for it. Pausing a job that is
    held changes nothing. A job that has ended, or is being cancelled, cannot be paused, which is exit code
    4. The store is that of APP, of --url, or of the variable TALLY_URL. With --where, --tag, --older and
    the like there is no JOB: all unfinished jobs that match are held, after a count.
    """
    if speak_to_many(
        "pause",
        which,
        (job, app, url),
        lambda tally, jobs: tally.pause_many(why=why, by=by, **jobs),
        as_json=as_json,
    ):
        return
    assert job is not None
    with acting_on(job, app, url) as found:
        held = found.pause(why, by=by)
    if held is Held.ENDED:
        raise JobEnded(f"job {short(found.id)} has ended, or is being cancelled", job_id=found.id)
    answer(held.value, {"job_id": found.id, "paused": held.name}, as_json=as_json)
