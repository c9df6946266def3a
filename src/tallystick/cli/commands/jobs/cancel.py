"""`tally cancel`: a job is asked to end, with time to clean up."""

from __future__ import annotations

from typing import Any

import click

from tallystick.cli.commands.jobs.many import many_options, speak_to_many
from tallystick.cli.place import acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import short
from tallystick.core.durations import duration_ms
from tallystick.core.lifecycles import JobState
from tallystick.defaults import CANCEL_GRACE
from tallystick.errors import JobEnded

_EXAMPLES = """\b
Examples:
  tally cancel 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally cancel 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --grace 5m --json
  tally cancel shop --where workflow=checkout --older 2d --yes
"""


@click.command("cancel", epilog=_EXAMPLES)
@click.argument("job", required=False)
@click.argument("app", required=False)
@click.option(
    "--grace",
    metavar="DURATION",
    default=CANCEL_GRACE,
    show_default=True,
    help="How long a running job may clean up before it is ended.",
)
@click.option("--force", is_flag=True, help="End it now, even if it runs; effects in doubt stay open.")
@many_options
@by_option
@url_option
@json_option
def command(
    *,
    job: str | None,
    app: str | None,
    grace: str,
    force: bool,
    by: str,
    url: str | None,
    as_json: bool,
    **which: Any,  # noqa: ANN401 (as `many_options` declares)
) -> None:
    """Ask a job to end and print the state it is in now.

    CANCELLED: no worker ran it, and it has ended. CANCELLING: it runs, meets the request at its next call,
    and has the grace to clean up; or it has an effect in doubt, and ends when it is known what came of that.
    With --force it ends now, and its effects stay open: `tally resolve --key`, which needs no JOB, closes
    them. A job that had ended otherwise stays as it is, which is exit code 4. The store is that of APP, of
    --url, or of the variable TALLY_URL. With --where, --tag, --older and the like
    there is no JOB: all unfinished jobs that match are asked to end, after a count.
    """
    duration_ms(grace)
    if speak_to_many(
        "cancel",
        which,
        (job, app, url),
        lambda tally, jobs: tally.cancel_many(grace=grace, by=by, **jobs),
        as_json=as_json,
    ):
        return
    assert job is not None
    with acting_on(job, app, url) as found:
        state = found.cancel(grace=grace, force=force, by=by)
    if state not in (JobState.CANCELLING, JobState.CANCELLED):
        raise JobEnded(f"job {short(found.id)} has ended: {state.value}", job_id=found.id, state=state.value)
    answer(state.value, {"job_id": found.id, "state": state.value}, as_json=as_json)
