"""`tally send`: a signal for a job, durable when the command has ended."""

from __future__ import annotations

import sys
from typing import Final

import click

from tallystick.cli.output import show, show_data
from tallystick.cli.place import acting, json_option, url_option
from tallystick.cli.wording import short
from tallystick.core.limits import PAYLOAD_BYTES_MAX
from tallystick.core.strict_json import Json, decode_strict
from tallystick.errors import BadJson, JobEnded
from tallystick.store.api import Delivered

_STDIN: Final = "-"

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
@url_option
@json_option
def command(
    *,
    job: str,
    name: str,
    value: str | None,
    app: str | None,
    signal_id: str | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Send a signal to a job and say what became of it.

    The value is JSON, - for JSON on stdin, or null when there is none. A signal that nobody waits for yet is
    kept; one for a job that has ended is exit code 4. The store is that of APP, of --url, or of the variable
    TALLY_URL.
    """
    payload = _value(value)
    with acting(app, url) as tally:
        delivered = tally.job(job).send(name, payload, id=signal_id)
    if delivered is Delivered.DROPPED:
        raise JobEnded(f"job {short(job)} has ended, and the signal was dropped", job_id=job, signal=name)
    if as_json:
        show_data({"job_id": job, "signal": name, "delivered": delivered.name})
    else:
        show(delivered.value)


def _value(text: str | None) -> Json:
    if text is None:
        return None
    if text == _STDIN:
        return decode_strict(sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1))
    try:
        return decode_strict(text.encode("utf-8", "surrogateescape"))
    except BadJson as error:
        raise BadJson(
            f"{error.message}; text needs quotes of its own ('\"yes\"'), and an APP comes after the value",
            **error.fields,
        ) from None
