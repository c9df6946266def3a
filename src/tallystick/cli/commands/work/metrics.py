"""`tally metrics`: how a store stands, as Prometheus reads it."""

from __future__ import annotations

import click

from tallystick.cli.place import looking, url_option
from tallystick.cli.render.output import show
from tallystick.clock import SystemClock
from tallystick.watch import exposition

_EXAMPLES = """\b
Examples:
  tally metrics shop
  tally metrics --url sqlite:///shop.db | grep queue_depth
"""


@click.command("metrics", epilog=_EXAMPLES)
@click.argument("app", required=False)
@url_option
def command(*, app: str | None, url: str | None) -> None:
    """Print the series of a store once, in the text format of Prometheus.

    The store is that of APP, of --url, or of the variable TALLY_URL. `tally serve` answers /metrics with the
    same; `tally work --metrics HOST:PORT` has those of its process too.
    """
    text_of_store = exposition().text_of_store
    with looking(app, url) as store:
        show(text_of_store(store, SystemClock()).decode().rstrip("\n"))
