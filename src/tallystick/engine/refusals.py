"""A job whose write breaks a rule of the store is held; it is logged once and not charged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tallystick.core.verbs.holds import Hold
from tallystick.engine.failure import Failure
from tallystick.errors import CallDiffers, LedgerCeiling, TallyError

if TYPE_CHECKING:
    from tallystick.engine.segment import Segment
    from tallystick.store.api import Bundle

_log = logging.getLogger("tallystick.engine")


def turn_down(segment: Segment, error: TallyError) -> Bundle:
    """Note what was refused, and return the bundle that ends the segment.

    The job is held, because it would be refused again; it has failed where its ledger is full. A call that
    is not the one which was begun is no fault of the store.
    """
    if segment.turned_down is None:
        segment.turned_down = error
        statement = error.fields.get("statement", "")
        about = {"action": "segment.refused", "job_id": segment.job_id, "statement": statement}
        _log.error("job %s: a write was refused, %s", segment.job_id, error, extra=about)
    if isinstance(error, LedgerCeiling):
        return segment.failed(Failure.of(error))
    if isinstance(error, CallDiffers):
        why = f"{error}; put back the code or the values that it was called with, and resume the job"
        return segment.held(Hold.MISMATCH, why)
    why = f"{error}; nothing of it was written. See tally doctor, and resume the job when it is mended"
    return segment.held(Hold.REFUSED, why)
