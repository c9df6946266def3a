"""How a bundle is refused: what SQLite says, in our words."""

from __future__ import annotations

import re
from typing import Final

import apsw

from tallystick.errors import BadInput, InvariantBroken, SemaphoreUnderflow, StaleLease, TallyError
from tallystick.store.api import Fence

# What binding a value raises that no column can hold: a number beyond 64 bits, half a surrogate pair.
UNSTORABLE: Final = (TypeError, ValueError, OverflowError)

_FENCE_GONE: Final = re.compile(r"NOT NULL constraint failed: (steps|events)\.job_id")


class Refused(Exception):
    """One bundle cannot be written; the error is its outcome."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def fence_is_gone(error: apsw.ConstraintError) -> bool:
    """Tell whether the fence, which gives a row its job, found no live lease."""
    return _FENCE_GONE.search(str(error)) is not None


def stale(fence: Fence) -> StaleLease:
    """Return the refusal of a report by somebody who no longer holds the lease."""
    return StaleLease(
        f"attempt {fence.attempt} of job {fence.job_id} no longer holds its lease; nothing was written",
        job_id=fence.job_id,
        attempt=fence.attempt,
        lease_id=fence.lease_id,
    )


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
