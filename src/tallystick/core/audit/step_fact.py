"""The fact that the row of a step is: with the digits that the row had when it was written.

The row of a wait or a group may learn two digits after its end (step 2 and step 3 of its message), and its
fact does not change. So the digits of the fact are those of the row, or the row's without what it learnt
since; the hash says which. It also says in which form the fact was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tallystick.core.chain import GENESIS, event_hash, old_step_payload, read_step_payload, step_payload
from tallystick.core.digits import ActivityLedger
from tallystick.core.pictures import OPEN, Activity
from tallystick.core.values import StoredEvent

LEARNING: Final = frozenset({"wait", "sleep", "group", "remote", "effect"})
"""Kinds of steps that a message answers."""

_LEARNT: Final = tuple(
    field.weight for field in ActivityLedger.FIELDS if field.name in ("children_spawned", "tasks_done")
)
LEARNT: Final = tuple(
    first + second
    for first in (0, ActivityLedger.of(children_spawned=1))
    for second in (0, ActivityLedger.of(tasks_done=1))
)
"""By how much the digits of a row may be more than those of its fact."""


def revisions(activity: Activity, ledger: ActivityLedger) -> range:
    """Return how often the row of an activity that has no fact may have been written, by its digits.

    Each entry is one writing, of a group also that it is complete; then the drop, and of a complete group the
    step 2 of a message that drove the last segment and was not taken. An entry that no digit can count is not
    written, so a full ledger says as much as any other.
    """
    least = ledger.leg1_entries + ledger.leg2_entries
    is_group = activity.kind == "group"
    if is_group:
        least += ledger.leg1_complete
    if activity.state != OPEN:
        least += 1 if is_group else 1 + ledger.get("work_done")
    may_learn = is_group and activity.state != OPEN and ledger.leg1_complete
    return range(least, least + 1 + may_learn)


def told(
    job_id: str,
    n: int,
    kind: str,
    at: int,
    attempt: int,
    name: str,
    occurrence: int,
    state: str,
    ledger: int,
    result: str | None,
    error: str | None,
    notes: str | None,
    before: bytes | None,
    head: bytes,
    *,
    printed: str | None = None,
) -> StoredEvent:
    """Return the fact that a row is; if it fits no hash that it may have had, in the older form.

    `printed` is the fingerprint of what else the row of a remote step or a group says, or of the key of an
    effect.
    """
    prev_hash = GENESIS if before is None else before
    row = (result, error, notes)
    digits = tuple(_before(ledger)) if kind in LEARNING else (ledger,)
    forms = [(step_payload, (printed,)), (old_step_payload, ())]
    if kind in ("effect", "group") and printed is not None:
        # One that another job has done says nothing of a key, and neither did facts of an older form.
        forms.insert(1, (step_payload, (None,)))
    for written, also in forms:
        for had in digits:
            payload = written(name, occurrence, state, had, *row, *also)
            # Read again: texts that are no JSON could make one payload of two rows.
            if event_hash(prev_hash, job_id, n, kind, at, attempt, payload) == head and read_step_payload(
                payload
            ) == (name, occurrence, state, had, *row, *(also or (printed,))):
                return StoredEvent(job_id, n, kind, at, attempt, payload, prev_hash, head)
    payload = old_step_payload(name, occurrence, state, ledger, *row)
    return StoredEvent(job_id, n, kind, at, attempt, payload, prev_hash, head)


def _before(ledger: int) -> Iterator[int]:
    """Yield the digits that a row may have had when it ended: those that it has, and without what it learnt.

    >>> [f"{digits:015d}" for digits in _before(1_111_100_000_001)]
    ['001111100000001', '001110100000001', '001111000000001', '001110000000001']
    """
    children, tasks = (weight * (ledger // weight % 10) for weight in _LEARNT)
    yield from dict.fromkeys((ledger, ledger - children, ledger - tasks, ledger - children - tasks))
