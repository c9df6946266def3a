"""`tally retry`: a new job in the place of one that has failed."""

from __future__ import annotations

from typing import Any

import click

from tallystick.cli.commands.jobs.many import many_options, speak_to_many
from tallystick.cli.place import acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import show, show_data, tell
from tallystick.cli.render.wording import short

_EXAMPLES = """\b
Examples:
  tally retry 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally retry 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
  tally retry shop --where workflow=checkout --older 2d --yes
"""


@click.command("retry", epilog=_EXAMPLES)
@click.argument("job", required=False)
@click.argument("app", required=False)
@many_options
@by_option
@url_option
@json_option
def command(
    *,
    job: str | None,
    app: str | None,
    by: str,
    url: str | None,
    as_json: bool,
    **which: Any,  # noqa: ANN401 (as `many_options` declares)
) -> None:
    """Make a new job in the place of JOB, which has failed, and print its id.

    It keeps everything that JOB recorded before the step it failed with, and its idempotency key. A second
    retry of JOB is the same new job. A job that has not failed is exit code 4. The store is that of APP, of
    --url, or of the variable TALLY_URL. With --where, --tag, --older and the like
    there is no JOB: all failed jobs that match and were not retried before are, after a count.
    """
    place = (job, app, url)
    if speak_to_many(
        "retry", which, place, lambda tally, jobs: tally.retry_many(by=by, **jobs), as_json=as_json
    ):
        return
    assert job is not None
    with acting_on(job, app, url) as found:
        retry = found.retry(by=by)
    if as_json:
        show_data({"job_id": retry.id, "retry_of": found.id, "created": retry.created})
        return
    if not retry.created:
        tell(f"job {short(found.id)} was retried before")
    show(retry.id)
