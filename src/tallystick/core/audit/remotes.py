"""Remote steps of workflows against their directives: each attempt has made one, of what the step says.

What a step has come to is in its fact, with a fingerprint of its row. A directive tells no fact of its own:
all of it but how it travelled follows from the job and the step, and is made again here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tallystick.core.audit.book import Findings
from tallystick.core.lifecycles import STEP, OutboxState, StepState
from tallystick.core.pictures import Now
from tallystick.core.remote.rows import PENDING, OutboxRow, ProtocolJob, ProtocolStep, outbox_id
from tallystick.core.verbs.protocol.step_drafts import as_made
from tallystick.errors import TallyError

ATTEMPTS_LOOKED_AT_MAX: Final = 100
"""How many attempts of a step are looked at: a damaged row may say any number."""

_STATES: Final = frozenset(state.value for state in STEP.states)


def judge_remote(
    home: ProtocolJob, step: ProtocolStep, find: Callable[[str], OutboxRow | None], findings: Findings
) -> int:
    """Note what is wrong about a step and its directives, and return what stands for all that was read."""
    if step.state not in _STATES:
        findings.note("state", f"remote step {step.step_id} is in no state that there is: {step.state}")
        return hash(step)
    if not step.is_open and step.lease_expires_at is not None:
        findings.note("columns", f"remote step {step.step_id} has ended and is due")
    seen = hash(step)
    for attempt_no in range(1, min(step.attempt_no, ATTEMPTS_LOOKED_AT_MAX) + 1):
        name = outbox_id(step.job_id, step.step_id, attempt_no)
        row = find(name)
        seen = hash((seen, row))
        if row is None:
            findings.note("outbox", f"the directive {name} is not there")
            continue
        try:
            for wrong in _wrong(home, step, attempt_no, row):
                findings.note("outbox", f"the directive {name} {wrong}")
        except (TallyError, ValueError) as error:
            findings.note("outbox", f"the directive {name} cannot be made again: {error}")
    return seen


def _wrong(home: ProtocolJob, step: ProtocolStep, attempt_no: int, row: OutboxRow) -> Iterator[str]:
    """Say what of a directive is not as its attempt made it, or cannot be where it is."""
    is_last = attempt_no == step.attempt_no
    if is_last and row.lease_id != step.lease_id:
        yield "has another lease than its step"
    of_attempt = step._replace(attempt_no=attempt_no, lease_id=row.lease_id)
    if _pinned(row) != _pinned(as_made(home, of_attempt, Now(row.created_at))):
        yield "is not what its step has asked for"
    on_its_way = is_last and step.state == StepState.DISPATCHING and step.lease_expires_at is not None
    if (row.state == PENDING) != on_its_way:
        yield f"is {row.state}, and its step is {step.state}"
    if (row.state == OutboxState.SENT) != (row.sent_at is not None):
        yield f"is {row.state}, and went out {'never' if row.sent_at is None else f'at {row.sent_at}'}"
    if (row.state == OutboxState.FAILED_FINAL) != (row.reason is not None):
        yield f"is {row.state}, and {'has no' if row.reason is None else 'has a'} reason why it never went"


def _pinned(row: OutboxRow) -> OutboxRow:
    """Return what was decided when a directive was made, without how far it has come."""
    return row._replace(state="", tries=0, next_try_at=0, sent_at=None, rev=0, taken_by=None, reason=None)
