"""Remote steps of workflows: opened with a directive, reported on as all remote steps, ended by a message.

A report changes the row of its step. Only the message that tells how the step has ended concerns the job: it
wakes it, as the answer to a wait does, and its function takes it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tallystick.core.chain import step_payload
from tallystick.core.ledger.marks import settled
from tallystick.core.lifecycles import STEP, JobState, StepState
from tallystick.core.pictures import Activity, JobFacts, Message, Now, Picture, Pictures, Place
from tallystick.core.plans import (
    NO_VALUES,
    Decision,
    InsertMessage,
    InsertRemote,
    JobValues,
    KeepReport,
    MoveActivity,
    MoveJob,
    MoveMessage,
    MoveRemote,
    Plan,
    Refusal,
    WithdrawDirectives,
    Write,
)
from tallystick.core.remote.answers import ended, printed
from tallystick.core.remote.plans import (
    Heard,
    Hearing,
    InsertAnswer,
    InsertOutbox,
    MoveOutbox,
    MoveProtocolStep,
    stale_report,
)
from tallystick.core.remote.requests import StepRequest, place_in_workflow
from tallystick.core.remote.row_prints import of_remote
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture, ProtocolStep, step_id_of
from tallystick.core.values import Asks, Fact
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.core.verbs.protocol.publishing import asked_anew
from tallystick.core.verbs.protocol.step_drafts import StepDraft
from tallystick.core.verbs.settling import entered
from tallystick.errors import CallDiffers, InvariantBroken

UNKNOWN: Final = Hearing(Heard.UNKNOWN)


def about_step(pictures: Pictures, request: StepRequest, now: Now) -> Decision:
    """Decide a request about a remote step of a workflow, and tell the job if the step has ended by it."""
    picture, place = pictures.get(request.job_id), place_in_workflow(request)
    assert place is not None, "what is about a protocol job does not come here"
    if picture is None or (step := picture.remotes.get(place)) is None:
        return Plan((), UNKNOWN)
    plan = decide(_seen(picture, step), request, now)
    writes: list[Write] = []
    after = step
    answer: Message | None = None
    for write in plan.writes:
        match write:
            case MoveProtocolStep(after, rev):
                writes.append(MoveRemote(after, place, rev))
            case MoveOutbox() | InsertOutbox():
                writes.append(write)
            case InsertAnswer(message):
                answer = message
            case _:
                raise InvariantBroken(f"a remote step of a workflow plans a {type(write).__name__}")
    job = picture.job
    if answer is not None:
        inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1)
        writes.append(InsertMessage(answer._replace(created_at=inbox[0], arrived=inbox[1])))
        job = job._replace(inbox_end=inbox[1], inbox_at=inbox[0])
    told: tuple[Write, ...] = ()
    if picture.lease is None and writes:
        told = _told(picture, job, place, after, now, ended=answer is not None)
    report = stale_report(request, plan.heard)
    if report is not None:
        writes.append(KeepReport(report))
    return Plan((*writes, *told), plan.hearing, wakes=bool(told))


def _seen(picture: Picture, step: ProtocolStep) -> ProtocolPicture:
    """Return one step of a job as decisions about remote steps look at it."""
    home, job = picture.home, picture.job
    if home is None:
        raise InvariantBroken(f"job {job.job_id} was not looked at as the home of a remote step")
    home = home._replace(state=job.state, rev=job.rev, hold=job.hold)
    pending = picture.directives.get(step.step_id)
    return ProtocolPicture(home, (step,), pending, in_workflow=not job.is_protocol)


def _told(
    picture: Picture, job: JobFacts, place: Place, after: ProtocolStep, now: Now, *, ended: bool
) -> tuple[Write, ...]:
    """Return what a job that no worker runs makes of a report: it goes on, or is a step nearer to its end."""
    if job.state != JobState.CANCELLING:
        return wake(job, now) if ended else ()
    steps = {**picture.remotes, place: after}
    until = _latest(steps.values(), picture.directives, now) or now.wall
    return (MoveJob(job._replace(cancel_at=until, rev=job.rev + 1), job.rev, None, NO_VALUES),)


def wake(job: JobFacts, now: Now) -> tuple[Write, ...]:
    """Return what makes a job due that no worker holds, unless it is, has never begun, or is about to end."""
    if job.attempt == 0 or job.is_ending(now) or (job.ready_at is not None and job.ready_at <= now.wall):
        return ()
    return (MoveJob(job._replace(ready_at=now.wall, rev=job.rev + 1), job.rev, None, NO_VALUES),)


def time_left(step: ProtocolStep, now: Now) -> int | None:
    """Return until when a remote worker may still end a step; None if none is at it."""
    return None if not step.is_in_flight or step.is_due(now.wall) else step.lease_expires_at


def ends_at(picture: Picture, now: Now) -> int | None:
    """Return until when remote workers may be at steps of a job; None when none is or will be."""
    return _latest(picture.remotes.values(), picture.directives, now)


def _latest(steps: Iterable[ProtocolStep], directives: Mapping[str, OutboxRow], now: Now) -> int | None:
    """Return when the last remote worker must have ended its step.

    A directive that was not taken and is not being published keeps no job waiting.
    """
    latest = None
    for step in steps:
        until, row = time_left(step, now), directives.get(step.step_id)
        is_free = row is not None and (row.is_pulled or row.next_try_at <= now.wall)
        if until is None or (is_free and step.state == StepState.DISPATCHING):
            continue
        latest = until if latest is None else max(latest, until)
    return latest


def open_step(
    picture: Picture, place: Place, asks: Asks, attempt: int, now: Now
) -> tuple[InsertRemote, InsertOutbox]:
    """Return the row of a remote step that begins, and its first directive."""
    job_id, service, step_type, payload, options, lease_id = picture.job.job_id, *asks
    new = ProtocolStep(
        job_id, step_id_of(place), 0, step_type, service, STEP.start.value, 0, 1, payload, options=options
    )
    draft = StepDraft(_seen(picture, new), now)
    draft.dispatch(new, lease_id, relays=False)
    plan = draft.plan(Heard.DONE, None)
    (made,) = (write for write in plan.writes if isinstance(write, InsertOutbox))
    return InsertRemote(draft.steps[0]._replace(rev=1), place, attempt), made


def last_opened(writes: Iterable[Write]) -> JobValues:
    """Return what names the last remote step that a plan opens as the one at which its job is."""
    last = None
    for write in writes:
        if type(write) is InsertRemote:
            last = write.step.step_id
    return NO_VALUES if last is None else JobValues(current_step_id=last)


def rearmed(picture: Picture, now: Now) -> tuple[Write, ...]:
    """Return what begins when a job is resumed: tries that waited for it, and the time to be asked for."""
    writes = []
    for place, step in picture.remotes.items():
        anew = None
        if step.state == StepState.FAILED_RETRY and step.lease_expires_at is None:
            anew = step._replace(lease_expires_at=now.wall, rev=step.rev + 1)
        elif step.step_id in picture.directives:
            anew = asked_anew(_seen(picture, step), now)
        if anew is not None:
            writes.append(MoveRemote(anew, place, step.rev))
    return tuple(writes)


class Taken(NamedTuple):
    """How the row of an activity ends with its message; `row` is what its fact says of other rows."""

    state: StepState
    result: str | None
    error: str | None = None
    row: str | None = None


def ended_by(picture: Picture, activity: Activity | None, message: Message) -> Taken:
    """Return how a remote step or an effect ends with the message that tells it.

    An effect that another job has done has no row yet: it begins and ends at once.
    """
    result, error = ended(message.payload)
    state = StepState.IN_PROGRESS if activity is None else StepState(activity.state)
    target = STEP.follow(state, "succeed" if error is None else _FAILS[state]).target
    if activity is None or activity.kind != "remote":
        return Taken(target, result, error, printed(message.payload))
    return Taken(target, result, error, of_remote(picture.remotes[activity.place], message.payload))


# By which move a step has failed, from where it was when that was known.
_FAILS: Final = {
    StepState.DISPATCHING: "give_up",
    StepState.AWAITING_ACK: "exhaust",
    StepState.IN_PROGRESS: "fail",
}


def take_unheard(picture: Picture, now: Now) -> list[Write] | Refusal:
    """Return what ends the steps that are known to be over, of a job whose function is not called any more.

    The job ends in the same bundle: what they count in its semaphore is in the delta of that.
    """
    writes: list[Write] = []
    waiting: dict[Place | None, Activity] = {each.place: each for each in picture.open_activities()}
    for message in picture.messages.values():
        if message.kind != "result" or message.acked_at is not None or message.is_taken:
            continue
        activity = waiting.pop(message.place, None)
        if activity is None:
            continue
        found = entered(picture.job.job_id, message.name, activity.ledger, message.ledger)
        if isinstance(found, Refusal):
            return found
        ledger, guid = settled(found.activity, found.guid, closes=False)
        state, result, error, row = ended_by(picture, activity, message)
        said = step_payload(activity.name, activity.occurrence, state, ledger, result, error, None, row)
        fact = Fact(picture.chain(), activity.kind, now.wall, activity.attempt, said)
        after = activity._replace(state=state, ledger=ledger, rev=activity.rev + 1)
        writes.append(MoveActivity(after, activity.rev, now.wall, fact, result, error))
        writes.append(MoveMessage(message._replace(ledger=guid, acked_at=now.wall), message.ledger))
        picture.activities[activity.place] = after
    return writes


def withdraw(picture: Picture) -> tuple[WithdrawDirectives, ...]:
    """Return what takes back the directives of a job that ends or turns, if it has remote steps open."""
    if not any(each.kind == "remote" for each in picture.open_activities()):
        return ()
    return (WithdrawDirectives(picture.job.job_id),)


# How many characters of the arguments of two calls an error shows.
_SHOWN_MAX: Final = 200


def other_call(picture: Picture, place: Place, asks: Asks) -> Refusal | None:
    """Refuse a call that is not the one for which its step was opened: the answer to that is not for it."""
    step = picture.remotes.get(place)
    if step is None or (step.service, step.step_type, step.payload) == asks[:3]:
        return None
    name = f"{place[1]}#{place[2]}"
    was = f"{step.step_type} of {step.service} with {_clipped(step.payload)}"
    now = f"{asks.step_type} of {asks.service} with {_clipped(asks.payload)}"
    return Refusal(
        CallDiffers(f"{name} was asked for as {was}, and is called as {now}", job_id=step.job_id, step=name)
    )


def _clipped(payload: str | None) -> str:
    """Return the beginning of arguments, for people."""
    text = payload or "nothing"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
