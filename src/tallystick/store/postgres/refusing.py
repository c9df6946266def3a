"""What refuses one bundle, and the outcome that it then has."""

from __future__ import annotations

import psycopg
from psycopg.errors import LockNotAvailable

from tallystick.errors import BadInput, TallyError
from tallystick.store.api import HeldUp
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import REFUSALS, refusal
from tallystick.store.refusals import UNSTORABLE, Refused

REFUSING = (Refused, TallyError, *REFUSALS, *UNSTORABLE)


def why_refused(error: Exception, address: Address) -> BaseException:
    """Return the outcome of a bundle that met one of these errors, or rows that others hold."""
    if isinstance(error, LockNotAvailable):
        return HeldUp(
            f"{address.url}: another transaction holds rows or a key that this needs; tally doctor names one "
            "that stays open",
            busy_ms=address.busy_ms,
            url=address.url,
        )
    if isinstance(error, Refused):
        return error.error
    if isinstance(error, TallyError):
        return error
    if isinstance(error, psycopg.Error):
        return refusal(error)
    return BadInput(f"a value cannot be stored: {error}")
