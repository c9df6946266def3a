"""`tally why`: one sentence about where a job stands, and what a person can do about it."""

from __future__ import annotations

import sys

import click

from tallystick.app.asking.sentence import Why
from tallystick.app.asking.why import explain
from tallystick.cli.commands.jobs.show import find_job
from tallystick.cli.place import json_option, looking, url_option, whole_id
from tallystick.cli.render.output import Ink, printable, show, show_data
from tallystick.clock import SystemClock

_EXAMPLES = """\b
Examples:
  tally why 01a1e109-dad7-70e7-b72a-a7770e0c41df shop
  tally why 01a1e109-dad7-70e7-b72a-a7770e0c41df --url sqlite:///shop.db --json
"""


@click.command("why", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@url_option
@json_option
def command(*, job: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Say why a job stands where it stands: what it waits for, since when, until when, or how it ended.

    Below it are the commands that may help. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    with looking(app, url) as store:
        job = whole_id(store, job)
        said = explain(store, find_job(store, job), SystemClock().wall_ms())
    if as_json:
        show_data(as_data(said))
        return
    ink = Ink.for_stream(sys.stdout)
    show("\n".join([printable(said), *(f"  {ink(printable(action), 'cyan')}" for action in said.actions)]))


def as_data(said: Why) -> dict[str, object]:
    """Return the sentence and what belongs to it for programs."""
    return {
        "why": str(said),
        "since": None if said.since is None else said.since.isoformat(),
        "until": None if said.until is None else said.until.isoformat(),
        "actions": list(said.actions),
        "child": None if said.child is None else as_data(said.child),
    }
