"""`tally fork`: a new job that begins with what another has recorded before a step."""

from __future__ import annotations

import click

from tallystick.cli.place import acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import show, show_data, tell

_EXAMPLES = """\b
Examples:
  tally fork 01a1e109-dad7-70e7-b72a-a7770e0c41df --at charge shop
  tally fork 01a1e109-dad7-70e7-b72a-a7770e0c41df --at charge#2 shop --version 2 --id ticket-7
  tally fork 01a1e109-dad7-70e7-b72a-a7770e0c41df --at approve --url sqlite:///shop.db --json
"""


@click.command("fork", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@click.option(
    "--at",
    metavar="STEP",
    required=True,
    help="The first step that is done again: its name, with #2 for its second call.",
)
@click.option("--version", metavar="VERSION", help="Go on with this version of the workflow.")
@click.option(
    "--id",
    "fork_id",
    metavar="ID",
    help="Make this fork once: said again with the same id, the same new job is printed.",
)
@click.option("--fresh-keys", is_flag=True, help="Let its effects act again, under keys of their own.")
@by_option
@url_option
@json_option
def command(
    *,
    job: str,
    app: str | None,
    at: str,
    version: str | None,
    fork_id: str | None,
    fresh_keys: bool,
    by: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Make a new job that keeps what JOB recorded before a step, and print its id.

    JOB stays as it is. A step that JOB never came to is exit code 3. `tally history` shows what it
    recorded. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with acting_on(job, app, url) as found:
        fork = found.fork(at=at, version=version, id=fork_id, fresh_keys=fresh_keys, by=by)
    if as_json:
        show_data({"job_id": fork.id, "fork_of": found.id, "at": at, "created": fork.created})
        return
    if not fork.created:
        tell("already forked")
    show(fork.id)
