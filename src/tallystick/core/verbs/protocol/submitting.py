"""A command becomes a job: all of its steps, and the directive of the first, in one commit."""

from __future__ import annotations

from typing import Final

from tallystick.core.audit.fingerprints import BORN
from tallystick.core.ledger.marks import OPENED, entry, settled
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import (
    Heard,
    InsertOutbox,
    InsertProtocolJob,
    InsertProtocolStep,
    ProtocolPlan,
    ProtocolWrite,
)
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.remote.row_prints import of_command
from tallystick.core.remote.rows import ProtocolPicture
from tallystick.core.verbs.protocol.drafts import PlanDraft

# The submission is leg 1 of the job; opening its steps is all that its start does, in the same commit.
_ENTERED: Final = entry(OPENED, 0)
_ROOT, _START = settled(_ENTERED.activity, _ENTERED.guid, closes=False)


def submit(request: SubmitCommand, now: Now) -> ProtocolPlan:
    """Return the rows of a job whose reservation was won."""
    job = request.job._replace(
        state=JobState.QUEUED.value,
        semaphore=len(request.steps),
        root_ledger=_ROOT,
        start_ledger=_START,
    )
    draft = PlanDraft(ProtocolPicture(job, request.steps), now)
    draft.dispatch(request.steps[0], request.lease_id, relays=request.relays)
    born = {BORN: of_command(job, request.about)}
    plan = draft.plan(Heard.CREATED, "submit", step=request.steps[0].step_id, **born)
    writes: list[ProtocolWrite] = [InsertProtocolStep(step._replace(rev=1)) for step in draft.steps]
    writes += [write for write in plan.writes if isinstance(write, InsertOutbox)]
    return plan._replace(writes=(InsertProtocolJob(draft.job._replace(rev=1), request.about), *writes))
