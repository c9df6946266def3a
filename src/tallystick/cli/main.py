"""The entry point of `tally`: turns every error of a user into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 bad usage or a failed run, 3 not found, 4 an illegal value, 5 the store,
6 findings. An error carries its own, and docs/exit-codes.md lists them all. A traceback is a bug of ours.
The plain spelling of `tally ledger` is understood here without an option parser, because parsing takes longer
than drawing; every other spelling, help and bad usage go through click, which knows the same command.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tallystick.cli.render.output import (
    INTERRUPTED,
    OUTPUT_LOST,
    READER_GONE,
    OutputLost,
    ReaderGone,
    complain,
    flush,
    let_go_of_broken_streams,
    replace_missing_streams,
    tell_error,
)
from tallystick.errors import TallyError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEDGER_FLAGS = frozenset({"--guid", "--json"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    replace_missing_streams()
    try:
        code = _run(given)
    except TallyError as error:
        code = tell_error(error, as_json="--json" in given)
    except KeyboardInterrupt:
        code = INTERRUPTED
    let_go_of_broken_streams()
    return code


def _run(given: list[str]) -> int:
    """Run one command, and see to it that what it printed has arrived."""
    try:
        code = _dispatch(given)
        flush()
    except ReaderGone:
        return READER_GONE
    except OutputLost as error:
        complain(str(error), {"code": "OUTPUT_LOST", "message": str(error)}, as_json="--json" in given)
        return OUTPUT_LOST
    return code


def _dispatch(given: list[str]) -> int:
    digits = _plain_ledger_call(given)
    if digits is not None:
        from tallystick.cli.render.ledger_drawing import present

        return present(digits, guid="--guid" in given, as_json="--json" in given)
    from tallystick.cli.group import run

    return run(given)


def _plain_ledger_call(given: list[str]) -> str | None:
    """Return the digits of `ledger [--guid] [--json] DIGITS`, or None for any other spelling."""
    if given[:1] != ["ledger"]:
        return None
    values = [word for word in given[1:] if not word.startswith("-")]
    flags = {word for word in given[1:] if word.startswith("-")}
    return values[0] if len(values) == 1 and flags <= _LEDGER_FLAGS else None
