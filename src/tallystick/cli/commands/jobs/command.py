"""`tally command`: a command, written in a file, becomes a job of the protocol that takes it."""

from __future__ import annotations

from typing import BinaryIO

import click

from tallystick.cli.loading import load_app
from tallystick.cli.place import announce_creation, json_option, url_option
from tallystick.cli.render.output import show, show_data, tell
from tallystick.core.limits import PAYLOAD_BYTES_MAX
from tallystick.errors import StoreMissing

_EXAMPLES = """\b
Examples:
  tally command shop command.json
  tally command shop - < command.json
"""


@click.command("command", epilog=_EXAMPLES)
@click.argument("app")
@click.argument("file", type=click.File("rb"))
@url_option
@json_option
def command(*, app: str, file: BinaryIO, url: str | None, as_json: bool) -> None:
    """Make a job of a command and print its id.

    FILE holds the command as JSON; - is stdin. The protocol that takes it is found by its `protocol_id`, or
    by its `request_type`. The same content, or the same `idempotency_key`, is the same job.
    """
    loaded = load_app(app)
    data = file.read(2 * PAYLOAD_BYTES_MAX)
    if url is not None:
        loaded.app.bind(url)
    try:
        loaded.app.runtime(create=False)
    except StoreMissing as missing:
        announce_creation(missing)
    try:
        job = loaded.app.command(data)
        if as_json:
            show_data({"job_id": job.id, "created": job.created, "state": job.state().value})
            return
        if not job.created:
            tell("already submitted")
        show(job.id)
    finally:
        loaded.app.close()
