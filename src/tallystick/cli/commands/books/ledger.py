"""`tally ledger`: fifteen digits drawn with their meaning, and what happens next."""

from __future__ import annotations

import click

from tallystick.cli.render.ledger_drawing import present

_EXAMPLES = """\b
Examples:
  tally ledger 001110000000001
  tally ledger --guid 000011000000001
"""


@click.command("ledger", epilog=_EXAMPLES)
@click.argument("digits")
@click.option("--guid", is_flag=True, help="The digits are those of a message, not of an activity.")
@click.option("--json", "as_json", is_flag=True, help="Print data instead of a drawing.")
def command(digits: str, *, guid: bool, as_json: bool) -> int:
    """Draw DIGITS with their meaning and say what happens next.

    Without --guid the digits are an activity's. Exit code 4 says that no history can have written them.
    """
    return present(digits, guid=guid, as_json=as_json)
