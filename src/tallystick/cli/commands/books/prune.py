"""`tally prune`: remove jobs that ended long ago, in batches."""

from __future__ import annotations

import click

from tallystick.cli.place import acting, json_option, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import count
from tallystick.engine.retention import age_ms

_EXAMPLES = """\b
Examples:
  tally prune shop --older-than 30d
  tally prune --url sqlite:///shop.db --older-than 12h --limit 10000 --json
"""


@click.command("prune", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option(
    "--older-than",
    metavar="DURATION",
    required=True,
    help="How long ago a job must have ended: 30d, 12h.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="How many jobs go at most.",
)
@url_option
@json_option
def command(*, app: str | None, older_than: str, limit: int, url: str | None, as_json: bool) -> None:
    """Remove jobs that ended that long ago, with all their books, and say how many.

    Each goes whole and for good: its result, its history, and its key, which may then be used again. What is
    unfinished stays, and so does a child until its parent may go. It is safe while workers run, and can be
    interrupted and repeated. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    age_ms(older_than)
    with acting(app, url) as tally:
        removed = tally.prune(older_than=older_than, limit=limit)
    answer(f"{count(removed, 'job')} removed", {"pruned": removed}, as_json=as_json)
