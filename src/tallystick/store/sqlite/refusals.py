"""How a bundle is refused: what SQLite says, in our words."""

from __future__ import annotations

import apsw

from tallystick.errors import BadInput, ChangeRefused, SemaphoreUnderflow, TallyError
from tallystick.store.refusals import Refused, statement_of


def refusal(error: BaseException) -> BaseException | None:
    """Return what a bundle is told about an error, or None if the error is not the bundle's own."""
    match error:
        case Refused():
            return error.error
        case TallyError():
            return error
        case apsw.ConstraintError():
            return _constraint(str(error), statement_of(error))
        case TypeError() | ValueError() | OverflowError():
            return BadInput(f"a value cannot be stored: {error}")
        case _:
            return None


def _constraint(text: str, statement: str) -> TallyError:
    fields = {"statement": statement, "sqlite": text}
    if "semaphore >= 0" in text:
        return SemaphoreUnderflow(**fields)
    return ChangeRefused(f"the database refused {statement}: {text}", **fields)
