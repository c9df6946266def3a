"""Answers about effects that are in doubt: of a probe, of a person, and when none is needed any more."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.after_end import act_of, left, not_done
from tallystick.core.effects.requests import Says, Settled, SettleEffect, TakeProbe
from tallystick.core.effects.rows import BY_CALL, Came, EffectRow, OpenEffect, Phase, answer_of
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import JobFacts, Now, Picture, Pictures
from tallystick.core.plans import (
    NO_VALUES,
    Decision,
    InsertMessage,
    KeepAct,
    MoveAttempt,
    MoveEffect,
    MoveJob,
    Plan,
    Refusal,
    Relook,
    Write,
)
from tallystick.core.requests import CancelJob
from tallystick.core.retry import RetryPolicy, next_delay_ms
from tallystick.core.values import Fact, Fence
from tallystick.core.verbs.asking import let_finish
from tallystick.core.verbs.effects.doubting import (
    LOST,
    doubts_again,
    find,
    held_for,
    needs_person,
    park,
    redoubted,
    waits,
)
from tallystick.core.verbs.effects.outcomes import ended, message_of, over, said_of
from tallystick.core.verbs.holds import Hold
from tallystick.errors import NotFound

PROBES: Final = RetryPolicy(attempts_max=6, base_ms=1_000, factor=3.0, cap_ms=60_000)
"""How often and how soon a probe is asked again that has raised."""

_UNANSWERED: Final = "its probe could not tell"
# Where nothing is called any more.
_NO_CALLS: Final = JOB.final | {JobState.CANCELLING}
NEVER: Final = 253_402_300_799_000
"""When a job is to end that was asked to and waits for what came of an effect: not before that is known."""


def take_probe(pictures: Pictures, request: TakeProbe, now: Now) -> Decision:
    """Give the right to ask the probe of an effect, for a while."""
    picture = pictures.get(request.job_id)
    found = None if picture is None else find(picture, request.unit)
    if found is None or found.row.rev != request.rev or found.row.phase != Phase.IN_DOUBT:
        return Plan((), None)
    row = found.row
    if row.due_at is None or row.due_at > now.wall:
        return Plan((), None)
    taken = row._replace(due_at=now.wall + request.lease_ms, probes=row.probes + 1, rev=row.rev + 1)
    return Plan((MoveEffect(taken, row.rev),), taken)


def settle_effect(pictures: Pictures, request: SettleEffect, now: Now) -> Decision:
    """Write what a probe or a person says about an effect that is in doubt."""
    picture = pictures.get(request.job_id)
    if picture is None:
        return Refusal(NotFound(f"there is no job {request.job_id}", job_id=request.job_id))
    found = _meant(picture, request)
    if isinstance(found, Settled):
        return Plan((), found)
    if picture.lease is not None:
        return Plan((), Settled.LIVE)
    if request.says is Says.RETRY and JobState(picture.job.state) in _NO_CALLS:
        return Plan((), Settled.ENDED)
    if request.rev is not None and found.row.rev != request.rev:
        return Plan((), Settled.MOVED)
    return _settled(pictures, picture, found.row, request, now)


def _meant(picture: Picture, request: SettleEffect) -> OpenEffect | Settled:
    """Return the effect that an answer is about, or why there is none."""
    named = [
        each
        for each in picture.open_effects.values()
        if request.unit in ("", each.row.unit, each.row.unit.partition("/")[2])
        and request.key in ("", each.row.key)
    ]
    doubtful = [each for each in named if each.is_doubtful]
    if len(doubtful) == 1:
        return doubtful[0]
    if doubtful:
        return Settled.SEVERAL
    calling = any(each.row.phase == Phase.CALLING for each in named)
    return Settled.LIVE if calling else Settled.NOT_IN_DOUBT


def _settled(
    pictures: Pictures, picture: Picture, row: EffectRow, request: SettleEffect, now: Now
) -> Decision:
    match request.says:
        case Says.HAPPENED:
            done = ended(row, Came.HAPPENED, request.result or "null", None, request.by, now)
            return _over(pictures, picture, row, done, request, now)
        case Says.DID_NOT_HAPPEN if row.calls >= row.rules.tries or JobState(picture.job.state) in JOB.final:
            error = not_done(row, f"{row.calls} calls were made, and it has not happened")
            done = ended(row, Came.NOT_DONE, None, error, request.by, now)
            return _over(pictures, picture, row, done, request, now)
        case Says.DID_NOT_HAPPEN | Says.RETRY:
            # Of the one it is known that nothing has happened; of the other it is as unknown as before.
            left = None if request.says is Says.DID_NOT_HAPPEN else row.doubt or LOST
            after = row._replace(phase=Phase.RESTING, due_at=now.wall, probes=0, doubt=left, rev=row.rev + 1)
            writes = (MoveEffect(after, row.rev), *_told(picture, after, request, now))
            return Plan(writes, Settled.AGAIN, wakes=True)
        case Says.UNKNOWN:
            return _unanswered(picture, row, request, None, now)
        case Says.LATER:
            return _unanswered(
                picture, row, request, next_delay_ms(PROBES, max(1, row.probes), row.exec_id), now
            )
    assert_never(request.says)


def _unanswered(
    picture: Picture, row: EffectRow, request: SettleEffect, delay_ms: int | None, now: Now
) -> Plan:
    """Return what becomes of an effect whose probe has not answered: asked again after a delay, or never."""
    due_at = None if delay_ms is None else now.wall + delay_ms
    why = request.why or _UNANSWERED
    after = row._replace(phase=Phase.IN_DOUBT, due_at=due_at, doubt=why, rev=row.rev + 1)
    held = held_for(picture, after, now)
    return Plan((MoveEffect(after, row.rev), *held), Settled.ASKED if due_at is not None else Settled.HELD)


def _over(
    pictures: Pictures, picture: Picture, row: EffectRow, done: EffectRow, request: SettleEffect, now: Now
) -> Plan:
    """Return the end of an effect; its job, if it goes on, takes the answer from its inbox."""
    ends = over(pictures, row, done, now)
    if JobState(picture.job.state) in JOB.final:
        return Plan((*ends, KeepAct(act_of(done))), Settled.DONE, wakes=True)
    guid = answer_of(row.job_id, row.place)
    message = message_of(picture.job, guid, row.place, said_of(done), now)
    job = picture.job._replace(inbox_end=message.arrived, inbox_at=message.created_at)
    writes = (*ends, InsertMessage(message), *_told(picture, done, request, now, job))
    return Plan(writes, Settled.DONE, wakes=True)


def _told(
    picture: Picture, after: EffectRow, request: SettleEffect, now: Now, job: JobFacts | None = None
) -> tuple[Write, ...]:
    """Return what an answer makes of the job: its hold goes with the last doubt, and it can go on."""
    job = job or picture.job
    others = [each.row for each in picture.open_effects.values() if each.row.unit != after.unit]
    frees = job.hold == Hold.IN_DOUBT and not any(map(needs_person, others))
    told: dict[str, object] = {"effect": after.unit, "key": after.key, "says": request.says, "by": request.by}
    if frees:
        told["frees"] = True
    fact = Fact(picture.chain(), "resolve", now.wall, job.attempt, msgspec.json.encode(told).decode())
    next_job = job._replace(hold=None if frees else job.hold, ready_at=now.wall, rev=job.rev + 1)
    if job.state == JobState.CANCELLING:
        # It ends when nothing of it is open outside.
        waits = any(row.is_open and row.may_have_happened for row in (after, *others))
        next_job = next_job._replace(ready_at=None, cancel_at=job.cancel_at if waits else now.wall)
    return (MoveJob(next_job, job.rev, fact, NO_VALUES),)


def asked_again(picture: Picture, now: Now) -> tuple[Write, ...]:
    """Return what lets probes be asked once more, of a job that is resumed without an answer.

    One that was not asked yet keeps its time: until then its call may still act.
    """
    return tuple(
        MoveEffect(row._replace(due_at=now.wall, probes=0, rev=row.rev + 1), row.rev)
        for row, _live in picture.open_effects.values()
        if row.phase == Phase.IN_DOUBT and row.rules.probe and (row.probes or row.due_at is None)
    )


def is_waited_for(picture: Picture) -> bool:
    """Tell whether a job cannot end yet, because the outcome of one of its effects is unknown."""
    return any(row.may_have_happened for row, _live in picture.open_effects.values())


def abandoned(picture: Picture) -> dict[str, object]:
    """Return what the fact of a job says that a person ends before it is known what came of its effects."""
    left = {row.unit: row.key for row, _live in picture.open_effects.values() if row.may_have_happened}
    return {"abandons": left} if left else {}


def before_end(
    pictures: Pictures, picture: Picture, fence: Fence, fact: Fact, now: Now
) -> tuple[Write, ...] | Plan | Relook:
    """Return what ends effects with their job, or what its segment comes to instead of the end.

    What was never done ends with the job. Where something may have happened the job waits for that.
    """
    if not any(each.kind == "effect" for each in picture.open_activities()):
        return ()
    if picture.effects is None:
        return Relook(picture.job.job_id)
    waited_for = next((row for row, _live in picture.effects.values() if row.may_have_happened), None)
    if waited_for is not None:
        row = redoubted(waited_for, now) if waited_for.phase == Phase.RESTING else waited_for
        parked = park(picture, fence, fact.chain, fact.at, row, now, is_over=True)
        return waits((*doubts_again(picture, now), *parked))
    return unneeded(pictures, picture, now)


def unneeded(pictures: Pictures, picture: Picture, now: Now) -> tuple[Write, ...]:
    """Return what ends the effects of which nothing has happened, with their job; others stay in doubt."""
    ends = (
        write
        for row, _live in picture.open_effects.values()
        if not row.may_have_happened
        for write in over(pictures, row, ended(row, Came.NOT_DONE, None, left(row), BY_CALL, now), now)
    )
    return (*ends, *doubts_again(picture, now))


def let_answer(picture: Picture, request: CancelJob, now: Now) -> Plan:
    """Ask a job to end as soon as it is known what came of its effects.

    A call that is under way is let finish; otherwise no worker runs the job any more.
    """
    lease, effects = picture.lease, picture.open_effects.values()
    calls = [
        row.called_at + row.rules.lease_ms for row, live in effects if live and row.phase == Phase.CALLING
    ]
    if lease is not None and lease.live and calls:
        return let_finish(picture, request, max(calls), now)
    asked = let_finish(picture, request, NEVER, now)
    asked = asked._replace(writes=(*doubts_again(picture, now), *asked.writes))
    if lease is None:
        return asked
    aborted = ATTEMPT.follow(AttemptState(lease.status), "abort")
    fence = Fence(picture.job.job_id, lease.attempt, lease.lease_id)
    reason = AbortReason.CANCELLED
    attempt = MoveAttempt(*fence, lease.status, aborted.target, reason, charged=False, live=lease.live)
    told = {"attempt": aborted.path, "reason": reason.value, "charged": False}
    fact = Fact(picture.chain(), "doubt", now.wall, lease.attempt, msgspec.json.encode(told).decode())
    writes = tuple(
        write._replace(fact=fact) if isinstance(write, MoveJob) else write for write in asked.writes
    )
    return asked._replace(writes=(attempt, *writes))
