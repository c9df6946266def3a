"""How a bundle is refused: what SQLite says, in our words."""

from __future__ import annotations

import apsw

from tallystick.errors import BadInput, InvariantBroken, SemaphoreUnderflow, StaleLease, TallyError
from tallystick.store.refusals import Refused


def refusal(error: BaseException) -> BaseException | None:
    """Return what a bundle is told about an error, or None if the error is not the bundle's own."""
    match error:
        case Refused():
            return error.error
        case TallyError():
            return error
        case apsw.ConstraintError():
            return _constraint(str(error))
        case TypeError() | ValueError() | OverflowError():
            return BadInput(f"a value cannot be stored: {error}")
        case _:
            return None


def _constraint(text: str) -> TallyError:
    if "semaphore >= 0" in text:
        return SemaphoreUnderflow(sqlite=text)
    if "MARKER" in text:
        return StaleLease("step 2 of this message is done already, or its step 1 is not", sqlite=text)
    return InvariantBroken(f"the database refused an illegal change: {text}", sqlite=text)
