"""`tally resolve`: what a person has found out about an effect that is in doubt."""

from __future__ import annotations

import click

from tallystick.app.effects.resolving import UNSAID
from tallystick.cli.place import acting, json_option, url_option
from tallystick.cli.render.output import show, show_data
from tallystick.core.json_forms.strict_json import decode_strict

_EXAMPLES = """\b
Examples:
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --happened '{"id": "ch_81"}'
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --did-not-happen
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --effect charge#2 --retry
"""


@click.command("resolve", epilog=_EXAMPLES)
@click.argument("job")
@click.argument("app", required=False)
@click.option(
    "--happened", metavar="JSON", help="It happened, and this is what the call would have returned."
)
@click.option("--did-not-happen", is_flag=True, help="It did not happen, and can no longer.")
@click.option("--retry", is_flag=True, help="Call it again under the same key, whatever happened.")
@click.option("--effect", metavar="NAME#N", default="", help="Which one, if several are in doubt.")
@click.option("--key", metavar="KEY", default="", help="Which one, by its key.")
@click.option("--by", metavar="WHO", default="", help="Who says so; the user of this process if left out.")
@url_option
@json_option
def command(
    *,
    job: str,
    app: str | None,
    happened: str | None,
    did_not_happen: bool,
    retry: bool,
    effect: str,
    key: str,
    by: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Say what came of an effect of JOB that is in doubt, so that the job can go on.

    Who said it, and when, is on the books. While a worker may be at it, or if nothing is in doubt, that is
    exit code 4. The store is that of APP, of --url, or of the variable TALLY_URL.
    """
    result = UNSAID if happened is None else decode_strict(happened.encode())
    with acting(app, url) as tally:
        settled = tally.job(job).resolve(
            happened=result, did_not_happen=did_not_happen, retry=retry, effect=effect, key=key, by=by
        )
    if as_json:
        show_data({"job_id": job, "resolved": settled.name})
    else:
        show(settled.value)
