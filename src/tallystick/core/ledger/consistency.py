"""Which digits can stand together: a ledger in range may still be one that no history has written.

A contradiction means corruption, or that the digits belong to the other kind of ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tallystick.core.digits import ActivityLedger, GuidLedger

# A field that is not zero, and the field that must not be zero then, in the order in which they are written.
_ACTIVITY: Final = (
    ("leg1_complete", "leg1_entries", "leg 1 is complete and was never entered"),
    ("leg2_entries", "leg1_complete", "a message has entered leg 2 and leg 1 is not complete"),
    ("work_done", "leg2_entries", "step 1 is marked and no message has entered leg 2"),
    ("children_spawned", "work_done", "step 2 is marked and step 1 is not"),
    ("tasks_done", "children_spawned", "step 3 is marked and step 2 is not"),
)
_GUID: Final = (
    ("work_done", "entry", "step 1 is marked and the message has no entry"),
    ("children_spawned", "work_done", "step 2 is marked and step 1 is not"),
    ("closed_job", "children_spawned", "the message closed the job and step 2 is not marked"),
    ("tasks_done", "closed_job", "step 3 is marked and the message did not close the job"),
)


def contradictions(ledger: ActivityLedger | GuidLedger) -> tuple[str, ...]:
    """Return what the digits claim that no history can have written; empty when there is nothing.

    >>> from tallystick.core.digits import ActivityLedger
    >>> contradictions(ActivityLedger.parse("001110000000001"))
    ()
    >>> contradictions(ActivityLedger.parse("000011000000001"))
    ('a message has entered leg 2 and leg 1 is not complete',)
    """
    rules = _ACTIVITY if ledger.KIND == "activity" else _GUID
    held = ledger.fields()
    return tuple(sentence for field, needed, sentence in rules if held[field] and not held[needed])
