"""`tally stage`: what the journal of a stage proves, without the program that wrote it."""

from __future__ import annotations

from pathlib import Path

import click

from tallystick.cli.render.output import printable, show, show_data, show_row

_EXAMPLES = """\b
Examples:
  tally stage digests.journal
  tally stage digests.journal --values
"""


@click.command("stage", epilog=_EXAMPLES)
@click.argument("journal", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--values", is_flag=True, help="Print every outcome, one JSON object per line, in order.")
@click.option("--json", "as_json", is_flag=True, help="Print data instead of text.")
def command(journal: Path, *, values: bool, as_json: bool) -> int:
    """Add up the JOURNAL of a stage: its runs, its outcomes, and whether its books agree.

    Reading changes nothing, also while the stage is running. Exit code 4 says that the file is corrupt, 1
    that the attempts of a run do not add up.
    """
    from tallystick.stage.journal.audit import audit

    if values:
        _show_values(journal)
        return 0
    found = audit(journal)
    if as_json:
        show_data(found.as_dict())
    else:
        show("\n".join(map(printable, str(found).split("\n"))))
    return 0 if found.ok else 1


def _show_values(journal: Path) -> None:
    from tallystick.stage.journal.audit import read_journal

    for one in read_journal(journal):
        row = {"seq": one.seq, "state": one.state.name, "attempts": one.attempts, "run": one.run}
        row |= {"value": one.value} if one.failure is None else {"failure": one.failure._asdict()}
        show_row(row)
