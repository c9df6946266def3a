"""`tally telemetry`: the local service that runs tell about themselves."""

from __future__ import annotations

import click

from tallystick.cli.render.output import show_data, tell
from tallystick.errors import BadInput, ExtraMissing

_EXAMPLES = """\b
Examples:
  tally telemetry serve --db telemetry.db
  tally run start tallystick.runs.toy:pipeline first --telemetry http://127.0.0.1:8765
  tally telemetry flush http://127.0.0.1:8765 --json
"""


@click.group("telemetry", epilog=_EXAMPLES)
def command() -> None:
    """Keep a book of runs, work items and events for audit."""


@command.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--db",
    default="telemetry.db",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="The file.",
)
@click.option("--allow-remote", is_flag=True, help="Listen beyond this machine; there is no authentication.")
def serve(host: str, port: int, db: str, *, allow_remote: bool) -> None:
    """Serve the telemetry API until interrupted."""
    if host not in {"127.0.0.1", "::1", "localhost"} and not allow_remote:
        raise BadInput(
            f"{host} is not this machine, and the service knows no users; say --allow-remote", host=host
        )
    try:
        import uvicorn
    except ImportError as error:
        if not ExtraMissing.explains(error, "uvicorn"):
            raise
        raise ExtraMissing("the telemetry service", "http") from error
    from tallystick.runs.telemetry.service import HOSTS, make_service

    service = make_service(db, hosts=("*",) if allow_remote else HOSTS)
    tell(f"telemetry on http://{host}:{port}, kept in {db}; stop with Ctrl-C")
    uvicorn.run(service, host=host, port=port, log_level="warning", limit_concurrency=64)


@command.command("flush")
@click.argument("url")
@click.option("--root", default="runs", show_default=True, type=click.Path(), help="The folder of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")
def flush(url: str, root: str, *, as_json: bool) -> None:
    """Send what waits in the buffer of --root to the service at URL."""
    from tallystick.runs.telemetry.client import flush_buffer

    sent = flush_buffer(url, root)
    if as_json:
        show_data({"sent": sent})
    else:
        tell(f"sent {sent} tellings")
