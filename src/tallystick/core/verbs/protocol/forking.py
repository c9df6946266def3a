"""A protocol job that begins with what another has come to: its steps before a point are copied."""

from __future__ import annotations

from tallystick.core.lifecycles import STEP, StepState
from tallystick.core.pictures import Message, Now
from tallystick.core.remote.plans import InsertAnswer, ProtocolPlan
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.remote.rows import ProtocolPicture, ProtocolStep, result_guid
from tallystick.core.verbs.protocol.submitting import ANSWERED, born
from tallystick.errors import NoSuchStep


def fork(
    picture: ProtocolPicture,
    about: NewProtocolJob,
    names: tuple[str, str],
    at: str | None,
    now: Now,
    *,
    retry: bool,
) -> ProtocolPlan:
    """Return the rows of a new job that asks anew for the step `at`, or for the first that did not succeed.

    `names` are its identifier and the lease of its first attempt. Copies keep their digits, and the messages
    that ended these steps are copied with them: the new job's books are whole without those of the other.
    """
    new_id, lease_id = names
    index = _index(picture, at)
    copies = [step._replace(job_id=new_id) for step in picture.steps[:index]]
    fresh = [_anew(step, new_id) for step in picture.steps[index:]]
    job = picture.job._replace(
        job_id=new_id,
        attempts_total=sum(step.attempt_no for step in copies),
        completed_at=None,
        result=None,
        error=None,
        error_code=None,
        error_message=None,
        hold=None,
    )
    said = {"fork_of": picture.job.job_id, "at": fresh[0].step_id, "retry": retry, "copied": len(copies)}
    plan = born(job, about, (*copies, *fresh), lease_id, now, "fork", said)
    told = tuple(InsertAnswer(_answer(step, now)) for step in copies)
    return plan._replace(writes=(*plan.writes, *told))


def _anew(step: ProtocolStep, job_id: str) -> ProtocolStep:
    """Return a step as it is born."""
    about = (step.step_id, step.step_index, step.step_type, step.service)
    return ProtocolStep(job_id, *about, STEP.start.value, 0, 1, step.payload)


def _index(picture: ProtocolPicture, at: str | None) -> int:
    """Return which step the new job begins with: all before it must have succeeded."""
    names = [step.step_id for step in picture.steps]
    ends = [step.state == StepState.SUCCEEDED for step in picture.steps]
    if at is None and False in ends:
        return ends.index(False)
    index = names.index(at) if at in names else len(names)
    if index == len(names) or not all(ends[:index]):
        known = ", ".join(f"{step.step_id} ({step.state})" for step in picture.steps)
        raise NoSuchStep(
            f"job {picture.job.job_id} cannot be forked at {at or 'its end'}: a step is asked for again when "
            f"all before it have succeeded; its steps: {known}",
            job_id=picture.job.job_id,
            step=at or "",
        )
    return index


def _answer(step: ProtocolStep, now: Now) -> Message:
    """Return the message that ended a step, as the copy of that step has it."""
    guid = result_guid(step.job_id, step.step_id, step.attempt_no)
    at = now.wall
    return Message(guid, step.job_id, 0, step.step_id, 1, "result", None, None, ANSWERED, 0, at, 0, at)
