"""`tally send`: a signal for a job, durable when the command has ended."""

from __future__ import annotations

import click

from tallystick.cli.given import given_json
from tallystick.cli.place import acting_on, by_option, json_option, url_option
from tallystick.cli.render.output import answer
from tallystick.cli.render.wording import short
from tallystick.errors import JobEnded
from tallystick.store.api import Delivered

_EXAMPLES = """\b
Examples:
  tally send 01a1e109-dad7-70e7-b72a-a7770e0c41df approve true shop
  tally send 01a1e109-dad7-70e7-b72a-a7770e0c41df address '{"city": "Turin"}' shop --id form-77
  tally send 01a1e109-dad7-70e7-b72a-a7770e0c41df go --url sqlite:///shop.db
  tally send 01a1e109-dad7-70e7-b72a-a7770e0c41df report - shop < report.json
"""


@click.command("send", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("name")
@click.argument("value", metavar="[VALUE_JSON]", required=False)
@click.argument("app", required=False)
@click.option("--id", "signal_id", metavar="ID", help="Send once for this id; repeating it changes nothing.")
@by_option
@url_option
@json_option
def command(
    *,
    job: str,
    name: str,
    value: str | None,
    app: str | None,
    signal_id: str | None,
    by: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Send a signal to a job and say what became of it.

    The value is JSON, - for JSON on stdin, or null when there is none. A signal that no wait asks for yet is
    kept; one for a job that has ended is exit code 4. The store is that of APP, of --url, or of the variable
    TALLY_URL.
    """
    payload = None if value is None else given_json(value, ", and an APP comes after the value")
    with acting_on(job, app, url) as found:
        delivered = found.send(name, payload, id=signal_id, by=by)
    if delivered is Delivered.DROPPED:
        raise JobEnded(
            f"job {short(found.id)} has ended, and the signal was dropped", job_id=found.id, signal=name
        )
    answer(
        delivered.value, {"job_id": found.id, "signal": name, "delivered": delivered.name}, as_json=as_json
    )
