"""What refuses one bundle, and the outcome that it then has."""

from __future__ import annotations

import psycopg

from tallystick.errors import BadInput, TallyError
from tallystick.store.postgres.connection import REFUSALS, refusal
from tallystick.store.refusals import UNSTORABLE, Refused

REFUSING = (Refused, TallyError, *REFUSALS, *UNSTORABLE)


def why_refused(error: Exception) -> BaseException:
    """Return the outcome of a bundle that met one of these errors."""
    if isinstance(error, Refused):
        return error.error
    if isinstance(error, TallyError):
        return error
    if isinstance(error, psycopg.Error):
        return refusal(error)
    return BadInput(f"a value cannot be stored: {error}")
