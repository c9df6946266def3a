"""`tally resolve`: what a person has found out about an effect that is in doubt."""

from __future__ import annotations

from typing import Any

import click

from tallystick.app.effects.resolving import UNSAID, late_reports
from tallystick.cli.place import ID_CHARS, acting, by_option, json_option, url_option, whole_id
from tallystick.cli.render.output import answer, tell
from tallystick.cli.render.wording import instant
from tallystick.core.json_forms.strict_json import decode_strict

_EXAMPLES = """\b
Examples:
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --happened '{"id": "ch_81"}'
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --did-not-happen
  tally resolve 01a1e109-dad7-70e7-b72a-a7770e0c41df shop --effect charge#2 --retry
  tally resolve shop --key charge:7 --did-not-happen
"""


@click.command("resolve", epilog=_EXAMPLES)
@click.argument("job", required=False)
@click.argument("app", required=False)
@click.option(
    "--happened", metavar="JSON", help="It happened, and this is what the call would have returned."
)
@click.option("--did-not-happen", is_flag=True, help="It did not happen, and can no longer.")
@click.option("--retry", is_flag=True, help="Call it again under the same key, whatever happened.")
@click.option("--effect", metavar="NAME#N", default="", help="Which one, if several are in doubt.")
@click.option("--key", metavar="KEY", default="", help="Which one, by its key.")
@by_option
@url_option
@json_option
def command(
    *,
    job: str | None,
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

    With --key and without JOB it is the effect that has this key, be its job over or not. Who said it, and
    when, is on the books. While a worker may be at it, or if nothing is in doubt, that is exit code 4. The
    store is that of APP, of --url, or of the variable TALLY_URL.
    """
    result = UNSAID if happened is None else decode_strict(happened.encode())
    says: dict[str, Any] = {"happened": result, "did_not_happen": did_not_happen, "retry": retry, "by": by}
    # With a key one word is the APP, unless it is as long as the id of a job.
    if key and app is None and job is not None and len(job) != ID_CHARS:
        job, app = None, job
    if job is None and not key:
        raise click.UsageError("Missing argument 'JOB', or --key.")
    with acting(app, url) as tally:
        job = None if job is None else whole_id(tally.runtime().store, job)
        for at, report in [] if job is None else late_reports(tally.runtime(), job):
            tell(f"came too late, at {instant(at)}: {report}")
        if job is None:
            settled = tally.resolve(effect=effect, key=key, **says)
        else:
            settled = tally.job(job).resolve(effect=effect, key=key, **says)
    answer(settled.value, {"job_id": job, "resolved": settled.name}, as_json=as_json)
