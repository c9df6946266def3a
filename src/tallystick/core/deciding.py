"""A request and a picture make a plan; a plan and a picture make the next picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EffectRequest,
    EndEffect,
    RestEffect,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import EffectRow, OpenEffect, Waiter
from tallystick.core.lifecycles import STEP, OutboxState, StepState
from tallystick.core.pictures import Activity, Message, Now, Picture, Pictures
from tallystick.core.plans import (
    AppendFact,
    AskDescendants,
    CountChild,
    Decision,
    DropActivities,
    DropInbox,
    EndAlike,
    InsertActivity,
    InsertAttempt,
    InsertChild,
    InsertEffect,
    InsertMessage,
    InsertRemote,
    InsertStep,
    KeepAct,
    KeepReport,
    MoveActivity,
    MoveAttempt,
    MoveEffect,
    MoveJob,
    MoveMessage,
    MoveRemote,
    MoveSemaphore,
    PutValue,
    Refusal,
    WithdrawDirectives,
    Write,
)
from tallystick.core.remote.plans import InsertOutbox, MoveOutbox
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    DeliverDirective,
    ExpireStep,
    MarkSent,
    NotPublished,
    RenewStep,
    TakeDirective,
)
from tallystick.core.requests import (
    AskRemotes,
    Await,
    CancelJob,
    CancelUnclaimed,
    Cycle,
    Deliver,
    EndAttempt,
    EndJob,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    SetValue,
    Spawn,
    TakeAnswer,
)
from tallystick.core.verbs.children import spawn
from tallystick.core.verbs.control import cancel_unclaimed, hold, resume, turn
from tallystick.core.verbs.control_requests import HoldJob, ResumeJob
from tallystick.core.verbs.effects import answering, calling, doubting
from tallystick.core.verbs.endings import cancel, end_job
from tallystick.core.verbs.protocol.remote import about_step
from tallystick.core.verbs.reclaiming import reclaim
from tallystick.core.verbs.records import record_event, record_step, release, set_value
from tallystick.core.verbs.waiting import ask_remotes, deliver, suspend_or_answer, take_answer
from tallystick.core.verbs.wants import Planned
from tallystick.errors import TakesNoSignals, TallyError

_DROPPED: Final = STEP.follow(StepState.IN_PROGRESS, "drop").target


def decide(pictures: Pictures, request: Planned | CancelUnclaimed, now: Now) -> Decision:
    """Return what a request comes to, given the pictures that it wants.

    What a machine or a ledger does not allow refuses the request, and no other of the same flush.
    """
    try:
        return _decide(pictures, request, now)
    except TallyError as error:
        return Refusal(error)


def _decide(  # noqa: C901, PLR0911, PLR0912 (one line for each request)
    pictures: Pictures, request: Planned | CancelUnclaimed, now: Now
) -> Decision:
    match request:
        case TakeAnswer():
            return take_answer(pictures, request, now)
        case Await():
            return suspend_or_answer(pictures, request, now)
        case AskRemotes():
            return ask_remotes(pictures, request, now)
        case EndJob():
            return end_job(pictures, request, now)
        case RecordStep():
            return record_step(pictures, request)
        case RecordEvent():
            return record_event(pictures, request)
        case SetValue():
            return set_value(pictures, request)
        case EndAttempt():
            return release(pictures, request, now)
        case Deliver():
            _check_hearer(pictures, request)
            return deliver(pictures, request, now)
        case Spawn():
            return spawn(pictures, request, now)
        case Cycle():
            return turn(pictures, request, now)
        case CancelJob():
            return cancel(pictures, request, now)
        case CancelUnclaimed():
            return cancel_unclaimed(pictures, request, now)
        case HoldJob():
            return hold(pictures, request, now)
        case ResumeJob():
            return resume(pictures, request, now)
        case ReclaimAttempt():
            return reclaim(pictures, request, now)
        case (
            AckStep() | RenewStep() | AnswerStep() | ExpireStep()
            | TakeDirective() | DeliverDirective() | MarkSent() | NotPublished()
        ):  # fmt: skip
            return about_step(pictures, request, now)
        case CallEffect() | EndEffect() | RestEffect() | DoubtEffect() | TakeProbe() | SettleEffect():
            return _about_effect(pictures, request, now)
    assert_never(request)


def _check_hearer(pictures: Pictures, request: Deliver) -> None:
    """Refuse a signal to a protocol job: none of its steps could ever wait for it."""
    if request.kind == "signal" and (picture := pictures.get(request.job_id)) and picture.job.is_protocol:
        raise TakesNoSignals(
            f"{request.job_id} is a protocol job, whose steps wait for remote workers and for no signal",
            job_id=request.job_id,
            signal=request.name,
        )


def _about_effect(pictures: Pictures, request: EffectRequest, now: Now) -> Decision:
    match request:
        case CallEffect():
            return calling.call(pictures, request, now)
        case EndEffect():
            return calling.end(pictures, request, now)
        case RestEffect():
            return calling.rest(pictures, request, now)
        case DoubtEffect():
            return doubting.doubt(pictures, request, now)
        case TakeProbe():
            return answering.take_probe(pictures, request, now)
        case SettleEffect():
            return answering.settle_effect(pictures, request, now)
    assert_never(request)


def see(pictures: Pictures, writes: Iterable[Write]) -> None:
    """Put what was planned into the pictures, for the next request of the same flush."""
    for write in writes:
        # Of these there are as many as children: a pattern would cost more than all that is done here.
        if type(write) is CountChild:
            group, message = write.group, write.message
            picture = pictures[group.job_id]
            picture.activities[group.place] = group
            picture.messages[message.guid] = message
        else:
            _see(pictures, write)


def _see(pictures: Pictures, write: Write) -> None:  # noqa: C901, PLR0912 (a case for each kind of write)
    match write:
        case InsertChild(job):
            if job.parent_job_id is not None and not job.detached:
                pictures[job.parent_job_id].has_open_children = True
        case MoveJob(job):
            pictures[job.job_id].job = job
        case MoveSemaphore(job, message=message, activity=activity):
            picture = pictures[job.job_id]
            picture.job = job
            picture.messages[message.guid] = message
            if activity is not None:
                picture.activities[activity.place] = activity
                _see_remote(picture, activity)
        case InsertActivity(activity) | MoveActivity(activity):
            pictures[activity.job_id].activities[activity.place] = activity
            _see_remote(pictures[activity.job_id], activity)
        case InsertRemote() | MoveRemote() | InsertOutbox() | MoveOutbox() | WithdrawDirectives():
            _see_directive(pictures, write)
        case InsertEffect(row) | MoveEffect(row):
            _see_effect(pictures, row, live=isinstance(write, InsertEffect) or write.lease is not None)
        case InsertMessage(message):
            _see_arrival(pictures[message.job_id], message)
        case MoveMessage(message):
            pictures[message.job_id].messages[message.guid] = message
        case EndAlike():
            see(pictures, write.each())
        case MoveAttempt(job_id):
            pictures[job_id].lease = None
        case DropActivities(job_id):
            _see_dropped(pictures[job_id])
        case DropInbox(job_id, keep, signals):
            messages = pictures[job_id].messages
            for message in list(messages.values()):
                if message.guid not in keep and (signals or message.kind != "signal"):
                    del messages[message.guid]
        case AskDescendants(job_id):
            pictures[job_id].has_open_children = False
        case InsertAttempt(job_id, guid=guid, unit=unit):
            if unit:
                pictures.waiters.setdefault(guid, set()).add(Waiter(job_id, unit))
        case InsertStep() | AppendFact() | PutValue() | KeepReport() | KeepAct() | CountChild():
            pass
        case _:
            assert_never(write)


def _see_dropped(picture: Picture) -> None:
    for activity in picture.open_activities():
        dropped = activity._replace(state=_DROPPED, rev=activity.rev + 1)
        picture.activities[activity.place] = dropped
        _see_remote(picture, dropped)


def _see_arrival(picture: Picture, message: Message) -> None:
    picture.messages[message.guid] = message
    if message.acked_at is None:
        end = max(picture.job.inbox_end, message.arrived)
        picture.job = picture.job._replace(inbox_end=end, inbox_at=message.created_at)


def _see_effect(pictures: Pictures, row: EffectRow, *, live: bool) -> None:
    """Put what became of an effect into the picture of its job, and of its key into those that are taken."""
    effects = pictures[row.job_id].effects
    if effects is not None:
        before = effects.pop(row.place, None)
        if row.is_open:
            effects[row.place] = OpenEffect(row, live or (before is not None and before.live))
    if row.is_occupying:
        pictures.occupied[row.occupies] = row
    else:
        pictures.occupied.pop(row.occupies, None)


def _see_directive(
    pictures: Pictures, write: InsertRemote | MoveRemote | InsertOutbox | MoveOutbox | WithdrawDirectives
) -> None:
    """Put what became of a remote step or of its directive into the picture of its job."""
    match write:
        case InsertRemote(step, place, attempt):
            picture = pictures[step.job_id]
            picture.remotes[place] = step
            picture.activities[place] = Activity(
                step.job_id, *place, "remote", step.state, step.ledger, step.rev, attempt, mode=step.payload
            )
        case MoveRemote(step, place):
            picture = pictures[step.job_id]
            picture.remotes[place] = step
            if (moved := picture.activities.get(place)) is not None:
                picture.activities[place] = moved._replace(state=step.state, ledger=step.ledger, rev=step.rev)
        case InsertOutbox(row) | MoveOutbox(row):
            directives = pictures[row.job_id].directives
            if row.state == OutboxState.PENDING:
                directives[row.step_id] = row
            else:
                directives.pop(row.step_id, None)
        case WithdrawDirectives(job_id):
            pictures[job_id].directives.clear()
        case _:
            assert_never(write)


def _see_remote(picture: Picture, activity: Activity) -> None:
    """Put what became of an activity into the row of a remote step, if it is one."""
    step = picture.remotes.get(activity.place)
    if step is not None:
        picture.remotes[activity.place] = step._replace(
            state=activity.state,
            ledger=activity.ledger,
            rev=activity.rev,
            lease_expires_at=step.lease_expires_at if activity.is_open else None,
        )
