"""`tally serve`: the HTTP API of an app, until told to stop."""

from __future__ import annotations

import click

from tallystick.cli.commands.http.opening import opened
from tallystick.cli.place import json_option, url_option
from tallystick.cli.render.output import flush, show, show_data, tell
from tallystick.defaults import IN_FLIGHT_MAX

_EXAMPLES = """\b
Examples:
  tally serve shop
  tally serve shop --bind 127.0.0.1:9000
  tally serve shop --bind 0.0.0.0:8000 --host api.example.com
  tally serve shop --bind 127.0.0.1:8000 --host tally.example.com
  tally serve shop --bind 0.0.0.0:8000 --host build-box --no-tls-in-front
  tally serve shop --runs runs
"""


@click.command("serve", epilog=_EXAMPLES)
@click.argument("app")
@click.option(
    "--bind", metavar="HOST:PORT", default="127.0.0.1:8000", show_default=True, help="Where to listen."
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which it answers, as Host has it; may be given more than once.",
)
@click.option(
    "--tls-in-front/--no-tls-in-front",
    "tls_in_front",
    default=None,
    help="Whether browsers come by TLS, through a proxy; if left out, they do with --host.",
)
@click.option(
    "--in-flight",
    metavar="N",
    type=click.IntRange(1),
    default=IN_FLIGHT_MAX,
    show_default=True,
    help="How many protocol jobs of one tenant may be open before commands are refused.",
)
@click.option("--dashboard/--no-dashboard", default=True, help="Whether to show the dashboard at /ui.")
@click.option(
    "--runs", "runs_root", metavar="FOLDER", type=click.Path(file_okay=False), help="Runs that it shows."
)
@url_option
@json_option
def command(
    *,
    app: str,
    bind: str,
    hosts: tuple[str, ...],
    tls_in_front: bool | None,
    in_flight: int,
    dashboard: bool,
    runs_root: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Answer over HTTP until SIGTERM or SIGINT: commands, jobs, remote workers, and the dashboard.

    A request without a key is refused. If the store has none, one is made for the life of this process, and
    printed. Only this machine can come, unless --bind says otherwise; TLS is for the proxy in front. With TLS
    in front the link to the dashboard is https, and browsers send its cookie by TLS alone.
    """
    from tallystick.http import http_app  # noqa: F401 (says which extra is missing)
    from tallystick.http.serving import Served, serve

    def announce(served: Served) -> None:
        if as_json:
            show_data(
                {"event": "serving", "url": served.url, "key": served.key, "dashboard": served.dashboard}
            )
        else:
            show(f"serving {served.url}")
            if served.key is not None:
                tell("there are no keys; this one works as long as this process lives:")
                show(served.key)
            if served.dashboard is not None:
                tell("the dashboard; this link logs you in once, within an hour:")
                tell(served.dashboard)
        flush()

    with opened(app, url) as tally:
        serve(
            tally,
            bind=bind,
            hosts=hosts,
            in_flight_max=in_flight,
            announce=announce,
            dashboard=dashboard,
            runs_root=runs_root,
            tls_in_front=tls_in_front,
        )
