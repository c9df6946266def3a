"""`tally metrics`: how a store stands, as Prometheus reads it."""

from __future__ import annotations

import click

from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import show, show_data
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
@json_option
def command(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Print the series of a store once, in the text format of Prometheus.

    The store is that of APP, of --url, or of the variable TALLY_URL. `tally serve` answers /metrics with the
    same; `tally work --metrics HOST:PORT` has those of its process too.
    """
    prometheus = exposition()
    with looking(app, url) as store:
        series = prometheus.StoreSeries(store, SystemClock())
        if as_json:
            show_data(prometheus.data_of(series))
        else:
            show(prometheus.text_of(series).decode().rstrip("\n"))
