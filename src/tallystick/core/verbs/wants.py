"""What each request wants to see before it is decided: rows to lock, and what to read of them."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, assert_never

from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EffectRequest,
    EndEffect,
    RestEffect,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import EffectKey, answer_of, taken_from
from tallystick.core.pictures import START, Place, group_place, join_of, place_of, timer_of
from tallystick.core.remote.requests import (
    AckStep,
    AnswerStep,
    DeliverDirective,
    ExpireStep,
    MarkSent,
    NotPublished,
    RenewStep,
    StepRequest,
    TakeDirective,
    place_in_workflow,
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
from tallystick.core.tuples import make
from tallystick.core.verbs.control_requests import HoldJob, ResumeJob

Planned: TypeAlias = (
    Await
    | AskRemotes
    | TakeAnswer
    | Deliver
    | Spawn
    | EndJob
    | Cycle
    | CancelJob
    | HoldJob
    | ResumeJob
    | RecordStep
    | RecordEvent
    | SetValue
    | EndAttempt
    | ReclaimAttempt
    | StepRequest
    | EffectRequest
)
"""The requests that are decided from a picture; of those about remote steps the ones for workflows."""


class Wants(NamedTuple):
    """What to read of one job; its row and its lease always are."""

    job_id: str
    # Every activity that is open.
    open: bool = False
    # Messages by identifier, with the activity that each names.
    guids: tuple[str, ...] = ()
    # Signals of these names that wait.
    signals: tuple[str, ...] = ()
    # How many of each name besides those that a decision needs.
    ahead: int = 0
    # The message that drives the attempt which holds the job, and all that have begun.
    begun: bool = False
    # One activity by its place.
    place: Place | None = None
    # Words of children that have ended before their group was complete.
    early: bool = False
    # Whether these children exist.
    children: tuple[str, ...] = ()
    # The end of its chain.
    end: bool = False
    # Its parent, with the group that it belongs to: it may end.
    ends: bool = False
    # Everything about its remote steps that are open, and the row of one in whatever state it is.
    remotes: bool = False
    remote: Place | None = None
    # How remote steps have ended whose results were not taken.
    results: bool = False
    # Its effects that are open, and which jobs have these keys.
    effects: bool = False
    keys: tuple[EffectKey, ...] = ()
    # The attempt that a sweep takes its job from, if it is not at work, and what that is judged by.
    lost: ReclaimAttempt | None = None
    # The step of a protocol job whose directive is not out.
    undelivered: bool = False


def _driver(driver: str) -> tuple[str, ...]:
    return () if driver == START else (driver,)


def _for_taking(request: TakeAnswer) -> Wants:
    job_id, guid = request.fence.job_id, request.wake.guid
    if request.wake.occurrence is None:
        return Wants(job_id, guids=(guid,))  # it has entered no wait, so none is open, and no timer set
    place = place_of(request.dimension, request.wait)
    if request.wait.kind == "remote":
        return Wants(job_id, guids=(guid,), remote=place)
    return Wants(job_id, guids=(guid, timer_of(job_id, place)))


def _for_ending(request: EndJob) -> Wants:
    return Wants(request.fence.job_id, open=True, guids=_driver(request.driver), ends=True)


def _for_waiting(request: Await) -> Wants:
    job_id = request.fence.job_id
    guids = list(_driver(request.driver))
    for wait in request.waits:
        place = place_of(request.dimension, wait)
        if wait.kind == "remote":
            continue
        if wait.kind == "effect":
            guids += _answers(job_id, place)
        elif wait.kind == "group":
            guids.append(join_of(job_id, f"{place[0]}:{place[1]}#{place[2]}"))
        else:
            guids.append(timer_of(job_id, place))
    signals = tuple({wait.name for wait in request.waits if wait.kind == "wait"})
    wants = Wants(job_id, open=True, guids=tuple(guids), signals=signals, ahead=request.ahead)
    remote = any(wait.kind == "remote" for wait in request.waits)
    return wants._replace(remotes=True, results=True) if remote else wants


def _answers(job_id: str, place: Place) -> tuple[str, str]:
    """Return what messages are called that tell what came of an effect: of its own calls, of another's."""
    answer = answer_of(job_id, place)
    return (answer, taken_from(answer))


def _for_spawning(request: Spawn) -> Wants:
    job_id, group = request.fence.job_id, request.group
    born = tuple(request.children[end][0].job_id for end in (0, -1) if request.children)
    last = group.child_id(job_id, request.total - 1)
    completes = last in born
    return Wants(
        job_id,
        place=group_place(str(group)),
        guids=(join_of(job_id, str(group)),) if completes else (),
        early=completes,
        children=(*born, last),
    )


def _for_delivery(request: Deliver) -> Wants:
    return Wants(request.job_id, open=True, guids=(request.guid,))


def _for_turning(request: Cycle) -> Wants:
    return Wants(request.fence.job_id, open=True, guids=_driver(request.driver), ends=True)


_CANCELLED: Final = Wants(
    "", open=True, begun=True, end=True, ends=True, remotes=True, results=True, effects=True
)


def _for_cancelling(job_id: str) -> Wants:
    return make(Wants, (job_id, *_CANCELLED[1:]))


def wanted_of_each(request: CancelUnclaimed) -> list[Wants]:
    """Return what a request about many jobs wants to see of each."""
    return [_for_cancelling(job_id) for job_id in request.job_ids]


def _for_holding(request: HoldJob | ResumeJob) -> Wants:
    resumes = isinstance(request, ResumeJob)
    return Wants(request.job_id, end=True, remotes=resumes, effects=resumes, undelivered=resumes)


def _for_step(request: StepRequest) -> Wants:
    return Wants(request.job_id, remotes=True, remote=place_in_workflow(request))


def _for_reclaiming(request: ReclaimAttempt) -> Wants:
    job_id = request.fence.job_id
    return Wants(job_id, open=True, begun=True, end=True, ends=True, remotes=True, lost=request, effects=True)


def _for_effect(request: EffectRequest) -> Wants:
    if isinstance(request, TakeProbe | SettleEffect):
        return Wants(request.job_id, end=True, effects=True)
    job_id = request.fence.job_id
    if isinstance(request, CallEffect):
        guids = _answers(job_id, request.place)
        return Wants(job_id, place=request.place, guids=guids, effects=True, keys=(request.intent.key,))
    return Wants(job_id, place=request.place, effects=True)


def wanted_to_escalate(job_id: str) -> Wants:
    """Return what to see of a job that ends because its ledger is full."""
    return Wants(job_id, open=True, end=True, ends=True, remotes=True)


def wanted(request: Planned) -> Wants:  # noqa: C901, PLR0911, PLR0912 (one line for each request)
    """Return what a request wants to see of its job."""
    match request:
        case TakeAnswer():
            return _for_taking(request)
        case Await():
            return _for_waiting(request)
        case AskRemotes():
            return Wants(request.fence.job_id, open=True, remotes=True)
        case EndJob():
            return _for_ending(request)
        case Deliver():
            return _for_delivery(request)
        case Spawn():
            return _for_spawning(request)
        case Cycle():
            return _for_turning(request)
        case CancelJob():
            return _for_cancelling(request.job_id)
        case HoldJob() | ResumeJob():
            return _for_holding(request)
        case ReclaimAttempt():
            return _for_reclaiming(request)
        case (
            AckStep() | RenewStep() | AnswerStep() | ExpireStep()
            | TakeDirective() | DeliverDirective() | MarkSent() | NotPublished()
        ):  # fmt: skip
            return _for_step(request)
        case CallEffect() | EndEffect() | RestEffect() | DoubtEffect() | TakeProbe() | SettleEffect():
            return _for_effect(request)
        case RecordStep() | RecordEvent() | SetValue() | EndAttempt():
            return Wants(request.fence.job_id)
    assert_never(request)
