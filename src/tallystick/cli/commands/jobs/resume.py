"""`tally resume`: a job that is held goes on."""

from __future__ import annotations

import click

from tallystick.cli.place import acting, json_option, url_option
from tallystick.cli.render.output import show, show_data
from tallystick.cli.render.wording import short
from tallystick.core.verbs.holds import Resumed
from tallystick.errors import JobEnded

_EXAMPLES = """\b
Examples:
  tally resume 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally resume 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
"""


@click.command("resume", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@url_option
@json_option
def command(*, job: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Let a job go on that was paused, or held because its code had changed.

    Resuming a job that is not held changes nothing. One that has ended cannot go on, which is exit code 4.
    The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with acting(app, url) as tally:
        resumed = tally.job(job).resume()
    if resumed is Resumed.ENDED:
        raise JobEnded(f"job {short(job)} has ended", job_id=job)
    if as_json:
        show_data({"job_id": job, "resumed": resumed.name})
    else:
        show(resumed.value)
