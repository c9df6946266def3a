"""`tally resume`: a job that is held goes on."""

from __future__ import annotations

from typing import Any

import click

from tallystick.app.running.restoring import resume_restored
from tallystick.cli.commands.jobs.many import many_options, speak_to_many
from tallystick.cli.place import acting, acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import count, short
from tallystick.core.verbs.holds import Resumed
from tallystick.errors import JobEnded

_EXAMPLES = """\b
Examples:
  tally resume 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally resume 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
  tally resume --restored shop
  tally resume shop --where workflow=checkout --older 2d --yes
"""


@click.command("resume", epilog=_EXAMPLES)
@click.argument("job", required=False)
@click.argument("app", required=False)
@click.option("--restored", is_flag=True, help="All jobs and schedules that stand still since a restoration.")
@many_options
@by_option
@url_option
@json_option
def command(
    *,
    job: str | None,
    app: str | None,
    restored: bool,
    by: str,
    url: str | None,
    as_json: bool,
    **which: Any,  # noqa: ANN401 (as `many_options` declares)
) -> None:
    """Let a job go on that was paused, or held because its code had changed.

    Resuming a job that is not held changes nothing. One that has ended cannot go on, which is exit code 4.
    With --restored there is no JOB: everything goes on that is held because the books were restored from a
    copy; with --where, --tag, --older and the like all held jobs that match, after a count. The store is
    that of APP, of --url, or of the variable TALLY_URL.
    """
    if restored:
        if app is not None or (job is not None and url is not None):
            raise click.UsageError("--restored is about all jobs: name no JOB.")
        if any(which.values()):
            raise click.UsageError(
                "--restored is about everything: leave it out to resume what filters find."
            )
        _resume_restored(job, url, by, as_json=as_json)
        return
    place = (job, app, url)
    if speak_to_many(
        "resume", which, place, lambda tally, jobs: tally.resume_many(by=by, **jobs), as_json=as_json
    ):
        return
    assert job is not None
    with acting_on(job, app, url) as found:
        resumed = found.resume(by=by)
    if resumed is Resumed.ENDED:
        raise JobEnded(f"job {short(found.id)} has ended", job_id=found.id)
    answer(resumed.value, {"job_id": found.id, "resumed": resumed.name}, as_json=as_json)


def _resume_restored(app: str | None, url: str | None, by: str, *, as_json: bool) -> None:
    with acting(app, url) as tally:
        jobs, schedules = resume_restored(tally, by)
    answer(
        f"{count(jobs, 'job')} and {count(schedules, 'schedule')} go on",
        {"jobs": jobs, "schedules": schedules},
        as_json=as_json,
    )
