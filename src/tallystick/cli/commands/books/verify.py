"""`tally verify`: whether the books are true, recomputed from facts and rows.

`tally doctor` says whether the store is well; this says whether what it keeps can be believed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from tallystick.cli.commands.books.seal import read_seal
from tallystick.cli.place import json_option, looking, url_option
from tallystick.cli.render.output import UNTRUE, Ink, printable, show, show_data
from tallystick.cli.render.wording import count, instant
from tallystick.clock import SystemClock
from tallystick.core.audit.free_columns import free_table, open_table
from tallystick.engine.audit import Audit
from tallystick.engine.audit.whole_store import verify
from tallystick.engine.retention import age_ms

_EXAMPLES = """\b
Examples:
  tally verify shop
  tally verify sqlite:///shop.db --since 1d
  tally verify shop --job 01a1e8fc-4a90-787c-89ca-64e1b9a22bc8 --json
"""


@click.command("verify", epilog=_EXAMPLES)
@click.argument("app", required=False)
@click.option("--job", "job_id", metavar="JOB", help="Check the books of this job alone.")
@click.option(
    "--since", metavar="AGE", help="Check the jobs that were written in this time alone: 1d, 12h, 10m."
)
@click.option(
    "--seal",
    "seal_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Compare with this seal, which `tally seal` has made.",
)
@click.option(
    "--signed-by",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Insist that the seal is signed by this public Ed25519 key, a PEM file.",
)
@click.option("--unseen", is_flag=True, help="Print the columns that may change unseen, and stop.")
@url_option
@json_option
def command(
    *,
    app: str | None,
    job_id: str | None,
    since: str | None,
    seal_file: Path | None,
    signed_by: Path | None,
    unseen: bool,
    url: str | None,
    as_json: bool,
) -> int:
    """Recompute the books of all jobs from their facts and rows, and compare.

    The store is that of APP, which may be an address too, of --url, or of the variable TALLY_URL. It only
    reads, a page at a time, and may run beside workers. The exit code is 0 when the books are true and 1 when
    something does not agree. What it cannot see is in the guide "verify".
    """
    if unseen:
        show(f"{free_table()}\n\nWhile a job, a step or an effect is open, also:\n\n{open_table()}")
        return 0
    if job_id is not None and since is not None:
        raise click.UsageError("--job and --since exclude each other.")
    if job_id is not None and seal_file is not None:
        raise click.UsageError("--job and --seal exclude each other: a seal is about the whole store.")
    if seal_file is None and signed_by is not None:
        raise click.UsageError("--signed-by is about the seal that --seal names.")
    sealed = None if seal_file is None else read_seal(seal_file, signed_by)
    oldest = None if since is None else SystemClock().wall_ms() - age_ms(since)
    if app is not None and url is None and "://" in app:
        app, url = None, app
    with looking(app, url) as store:
        found = verify(store, job_id=job_id, since=oldest, sealed=sealed, on_page=_progress())
    if as_json:
        show_data(as_data(found, oldest))
    else:
        show("\n".join(drawn(found, Ink.for_stream(sys.stdout))))
    return UNTRUE if found.findings_total else 0


def _progress() -> Callable[[Audit], None] | None:
    if not sys.stderr.isatty():
        return None

    def on_page(done: Audit) -> None:
        sys.stderr.write(f"\r\x1b[Kchecked {count(done.jobs, 'job')}\r")
        sys.stderr.flush()

    return on_page


def as_data(found: Audit, oldest: int | None) -> dict[str, object]:
    """Return what was found for programs."""
    return {
        "ok": not found.findings_total,
        "jobs": found.jobs,
        "facts": found.facts,
        "since": instant(oldest),
        "findings_total": found.findings_total,
        "findings": [finding._asdict() for finding in found.findings],
    }


def drawn(found: Audit, ink: Ink) -> list[str]:
    """Return what was found for people."""
    lines = [
        f"{ink('finding', 'bold', 'red')}: {job_id and f'job {job_id}: '}{check}: {printable(message)}"
        for job_id, check, message in found.findings
    ]
    if found.findings_total > len(found.findings):
        lines.append(f"there are {found.findings_total:,} findings; the first are shown")
    seen = f"{count(found.jobs, 'job')} and {count(found.facts, 'fact')} checked"
    verdict = (
        ink(f"the books are not true: {count(found.findings_total, 'finding')}", "bold", "red")
        if found.findings_total
        else ink("the books are true", "bold", "green")
    )
    return [*lines, seen, verdict]
