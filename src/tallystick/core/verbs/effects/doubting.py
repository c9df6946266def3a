"""Effects in doubt: how their outcome is found, and what becomes of the job until then.

In doubt is an effect whose call was made and whose lease is over without a word. Its probe is asked when the
call can have no more effect; if there is none, or it cannot tell, the job is held for a person.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import DUE_IN
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.chain import Chain
from tallystick.core.effects.requests import DoubtEffect, HeldInDoubt, Instead
from tallystick.core.effects.resting import rests_until
from tallystick.core.effects.rows import EffectRow, OpenEffect, Phase
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import JobFacts, Now, Picture, Pictures, Place
from tallystick.core.plans import (
    NO_VALUES,
    Decision,
    JobValues,
    MoveAttempt,
    MoveEffect,
    MoveJob,
    Plan,
    Write,
)
from tallystick.core.values import Fact, Fence
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.settling import stale

_RUNNING: Final = AttemptState.IN_PROGRESS
_ABORTS: Final = ATTEMPT.follow(_RUNNING, "abort")
LOST: Final = "its worker was lost after it had the right to act and before it said what came of it"


def doubt(pictures: Pictures, request: DoubtEffect, now: Now) -> Decision:
    """Write that the outcome of a call is unknown, and end the segment until it is known."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    row = called(picture, request.place, request.lease_id)
    if row is None:
        return stale(request.fence)
    after = doubted(row, request.why, now)
    parked = park(picture, request.fence, request.chain, request.at, after, now)
    return waits((MoveEffect(after, row.rev), *parked))


def called(picture: Picture, place: Place, lease_id: str) -> EffectRow | None:
    """Return the effect whose last call this is, unless something was said about it since."""
    found = picture.open_effects.get(place)
    if found is None or found.row.phase != Phase.CALLING or found.row.lease_id != lease_id:
        return None
    return found.row


def doubted(row: EffectRow, why: str, now: Now) -> EffectRow:
    """Return an effect that is in doubt from now on; its call may act no longer than it takes to settle."""
    rules = row.rules
    due_at = now.wall + rules.settle_ms if rules.probe else None
    return row._replace(phase=Phase.IN_DOUBT, doubt=why, due_at=due_at, rev=row.rev + 1)


def redoubted(row: EffectRow, now: Now) -> EffectRow:
    """Return an effect that was to be called again in doubt and will not be: others are to say."""
    rules = row.rules
    settled_at = row.called_at + rules.lease_ms + rules.settle_ms
    due_at = max(now.wall, settled_at) if rules.probe else None
    return row._replace(phase=Phase.IN_DOUBT, due_at=due_at, rev=row.rev + 1)


def doubts_again(picture: Picture, now: Now) -> tuple[Write, ...]:
    """Return what puts effects in doubt again that were to be called again in doubt: their job is to end."""
    return tuple(
        MoveEffect(redoubted(row, now), row.rev)
        for row, _live in picture.open_effects.values()
        if row.phase == Phase.RESTING and row.may_have_happened
    )


def needs_person(row: EffectRow) -> bool:
    """Tell whether only a person can say what came of an effect."""
    return row.phase == Phase.IN_DOUBT and row.due_at is None


def waits(writes: tuple[Write, ...]) -> Plan:
    """Return the plan that puts a job away; workers hear of it if the job goes on at an instant."""
    for write in writes:
        if isinstance(write, MoveJob) and write.values.hold_reason is not None:
            return Plan(writes, HeldInDoubt(write.values.hold_reason))
    wakes = any(isinstance(write, MoveJob) and write.job.ready_at is not None for write in writes)
    return Plan(writes, Instead.WAIT, wakes=wakes)


def park(
    picture: Picture, fence: Fence, chain: Chain, at: int, row: EffectRow, now: Now, *, is_over: bool = False
) -> tuple[Write, ...]:
    """Return what ends a segment that cannot go on before it is known what came of an effect.

    Nothing of the message that drives it is settled: the job is claimed again when there is an answer. If
    only a person can give that, the job is held; one that was asked to end is never held. `is_over`: the
    function has ended, and calls nothing again.
    """
    job = picture.job
    told: dict[str, object] = {"effect": row.unit, "key": row.key}
    if not needs_person(row) or job.state == JobState.CANCELLING:
        until = None if is_over else rests_until(picture, now)
        return put_away(job, fence, chain, at, {**told, "doubt": row.doubt}, until, now)
    why = why_held(row)
    told |= {"attempt": _ABORTS.path, "hold": Hold.IN_DOUBT.value, "why": why}
    fact = _fact(chain, "hold", at, fence.attempt, told)
    ended = MoveAttempt(*fence, _RUNNING, _ABORTS.target, AbortReason.HELD, charged=False, live=True)
    return (ended, _held(job, fact, why, now))


def put_away(
    job: JobFacts,
    fence: Fence,
    chain: Chain,
    at: int,
    told: dict[str, object],
    until: int | None,
    now: Now,
) -> tuple[Write, ...]:
    """Return what ends a segment until it is known what came of an effect, of this job or of another.

    The job goes on by itself when one of its own effects has rested (`until`): other jobs may wait for the
    key of that, and one of them may have the key that this job waits for.
    """
    reason = AbortReason.SUSPENDED
    about = {"attempt": _ABORTS.path, **told, "reason": reason.value, "charged": False}
    if until is not None:
        about[DUE_IN] = until - now.wall
    return (
        MoveAttempt(*fence, _RUNNING, _ABORTS.target, reason, charged=False, live=True),
        MoveJob(
            job._replace(ready_at=until, rev=job.rev + 1),
            job.rev,
            _fact(chain, "doubt", at, fence.attempt, about),
            NO_VALUES,
        ),
    )


def why_held(row: EffectRow) -> str:
    """Return why a job is held whose effect is in doubt, and what to do."""
    return (
        f"it is unknown whether {row.effect} happened under the key {row.key!r} ({row.unit}): "
        f"{row.doubt or LOST}. Find out and say so: tally resolve"
    )


def _held(job: JobFacts, fact: Fact, why: str, now: Now) -> MoveJob:
    """Return the hold; the job is due, so that it is claimed when it is resumed without an answer."""
    after = job._replace(hold=Hold.IN_DOUBT.value, ready_at=now.wall, rev=job.rev + 1)
    return MoveJob(after, job.rev, fact, JobValues(hold_reason=why))


def lost(picture: Picture, unit: str, now: Now) -> Plan:
    """Write that an effect is in doubt whose call was lost with its worker; no worker runs the job."""
    for row, _live in picture.open_effects.values():
        if row.unit == unit and row.phase == Phase.CALLING:
            after = doubted(row, LOST, now)
            return Plan((MoveEffect(after, row.rev), *held_for(picture, after, now)))
    return Plan(())


def held_for(picture: Picture, row: EffectRow, now: Now) -> tuple[Write, ...]:
    """Return what holds a job that no worker runs until a person has answered, if only a person can."""
    job = picture.job
    ends = job.state == JobState.CANCELLING or JobState(job.state) in JOB.final
    if ends or job.hold is not None or not needs_person(row):
        return ()
    why = why_held(row)
    told: dict[str, object] = {"hold": Hold.IN_DOUBT.value, "why": why, "effect": row.unit, "key": row.key}
    return (_held(job, _fact(picture.chain(), "hold", now.wall, job.attempt, told), why, now),)


def find(picture: Picture, unit: str) -> OpenEffect | None:
    """Return the open effect of that unit."""
    return next((each for each in picture.open_effects.values() if each.row.unit == unit), None)


def _fact(chain: Chain, kind: str, at: int, attempt: int, told: dict[str, object]) -> Fact:
    return Fact(chain, kind, at, attempt, msgspec.json.encode(told).decode())
