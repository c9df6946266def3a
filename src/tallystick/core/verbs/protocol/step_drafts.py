"""A draft of what becomes of one remote step of a workflow: the same moves, and another end.

How a step ends is decided here, by the rules of every remote step. The end itself is written by the workflow:
its function takes the message that tells it, as it takes the answer to a wait. Until then the row stays as it
was when its fate was known, without a lease, so that nothing is due and no report is accepted.
"""

from __future__ import annotations

import msgspec

from tallystick.core.lifecycles import STEP, StepState
from tallystick.core.pictures import Message, Now
from tallystick.core.remote.answers import failure, success
from tallystick.core.remote.plans import Heard, MoveProtocolJob, ProtocolPlan
from tallystick.core.remote.rows import (
    WITHDRAWN,
    OutboxRow,
    ProtocolJob,
    ProtocolPicture,
    ProtocolStep,
    place_of_step,
    result_guid,
)
from tallystick.core.verbs.protocol.drafts import PlanDraft


def drafted(picture: ProtocolPicture, now: Now) -> PlanDraft:
    """Begin a draft for a protocol job, or for one step of a workflow."""
    return (StepDraft if picture.in_workflow else PlanDraft)(picture, now)


class StepDraft(PlanDraft):
    """One remote step of a workflow on its way from a picture to a plan."""

    _succeeded = False

    def begin(self) -> None:
        """Do nothing: a workflow has begun before it asks for anything."""

    def move_step(self, step: ProtocolStep, *triggers: str) -> ProtocolStep:
        """Move the step, but not to its end: that is the workflow's to write."""
        if STEP.follow(StepState(step.state), *triggers).target in STEP.final:
            *triggers, last = triggers  # type: ignore[assignment]  # a list does as well
            self._succeeded = last == "succeed"
            step = step._replace(lease_expires_at=None)
        return super().move_step(step, *triggers)

    def end(self, trigger: str, step: ProtocolStep | None) -> None:  # noqa: ARG002 (a workflow has other ends)
        """Tell the workflow how its step has ended; the directive is not to be worked on any more."""
        step = self.move_step(self.steps[0]._replace(lease_expires_at=None))
        self.close_directive("withdraw", WITHDRAWN)
        said = success(step) if self._succeeded else failure(step)
        place = place_of_step(step.step_id)
        assert place is not None, "a step of a workflow has a place in it"
        guid = result_guid(step.job_id, step.step_id, step.attempt_no)
        payload = msgspec.json.encode(said).decode()
        now = self._now
        self._message = Message(guid, step.job_id, *place, "result", payload, None, 0, 0, now, 0, None)

    def plan(self, heard: Heard, kind: str | None, **about: object) -> ProtocolPlan:  # noqa: ARG002 (as above)
        """Return what has changed; the workflow is the author of its history, so no fact is told here."""
        plan = super().plan(heard, None)
        writes = tuple(write for write in plan.writes if not isinstance(write, MoveProtocolJob))
        return plan._replace(writes=writes)


def as_made(home: ProtocolJob, step: ProtocolStep, now: Now) -> OutboxRow:
    """Return the directive of an attempt of a step in a workflow, as it was made."""
    draft = StepDraft(ProtocolPicture(home, (step,), in_workflow=True), now)
    assert step.lease_id is not None, "an attempt has a lease"
    return draft.made(step, step.lease_id, relays=False)
