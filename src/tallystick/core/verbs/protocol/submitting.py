"""A command becomes a job: all of its steps, and the directive of the first, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
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
from tallystick.core.remote.requests import NewProtocolJob, SubmitCommand
from tallystick.core.remote.row_prints import of_command
from tallystick.core.remote.rows import ProtocolJob, ProtocolPicture, ProtocolStep
from tallystick.core.verbs.protocol.drafts import PlanDraft

# The submission is leg 1 of the job; opening its steps is all that its start does, in the same commit.
_ENTERED: Final = entry(OPENED, 0)
_ROOT, ANSWERED = settled(_ENTERED.activity, _ENTERED.guid, closes=False)
"""The digits of a job that has begun, and of a message that has answered: its start, or the end of a step."""


def submit(request: SubmitCommand, now: Now) -> ProtocolPlan:
    """Return the rows of a job whose reservation was won."""
    job, about, steps = request.job, request.about, request.steps
    return born(job, about, steps, request.lease_id, now, "submit", relays=request.relays)


def born(
    job: ProtocolJob,
    about: NewProtocolJob,
    steps: tuple[ProtocolStep, ...],
    lease_id: str,
    now: Now,
    kind: str,
    said: Mapping[str, object] = MappingProxyType({}),
    *,
    relays: bool = False,
) -> ProtocolPlan:
    """Return the rows of a new job, with the directive of its first step that has not ended."""
    first = next(step for step in steps if step.is_open)
    job = job._replace(
        state=JobState.QUEUED.value,
        semaphore=sum(step.is_open for step in steps),
        root_ledger=_ROOT,
        start_ledger=ANSWERED,
    )
    draft = PlanDraft(ProtocolPicture(job, steps), now)
    draft.dispatch(first, lease_id, relays=relays)
    plan = draft.plan(Heard.CREATED, kind, step=first.step_id, **{BORN: of_command(job, about)}, **said)
    writes: list[ProtocolWrite] = [InsertProtocolStep(step._replace(rev=1)) for step in draft.steps]
    writes += [write for write in plan.writes if isinstance(write, InsertOutbox)]
    return plan._replace(writes=(InsertProtocolJob(draft.job._replace(rev=1), about), *writes))
