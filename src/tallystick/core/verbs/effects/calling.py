"""Calls of effects: the intent that is durable before a call, and what its holder says afterwards.

COMMITTED is the right to act. Each call has a lease of its own, longer than the call may take, so that nobody
is at it when the lease is over. What came of a call is accepted while the job's lease is live, and only from
the holder of the last call.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.requests import (
    CallEffect,
    Differs,
    EndEffect,
    Granted,
    Instead,
    Known,
    Later,
    Occupied,
    RestEffect,
)
from tallystick.core.effects.rows import (
    BY_CALL,
    FIRST,
    Came,
    EffectRow,
    OpenEffect,
    Phase,
    exec_id_of,
    taken_from,
    unit_of,
)
from tallystick.core.ledger.marks import OPENED, first_entry
from tallystick.core.lifecycles import ATTEMPT, AttemptState, JobState
from tallystick.core.pictures import START, Activity, JobFacts, Message, Now, Picture, Pictures, Place
from tallystick.core.plans import (
    NO_VALUES,
    AppendFact,
    Decision,
    InsertActivity,
    InsertAttempt,
    InsertEffect,
    InsertMessage,
    MoveActivity,
    MoveEffect,
    MoveJob,
    Plan,
    Refusal,
    Write,
)
from tallystick.core.values import Fact, Wait
from tallystick.core.verbs.effects.doubting import park
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.settling import broken, stale
from tallystick.core.verbs.waiting import BEGUN, Taking, take
from tallystick.errors import EffectConflict

_COMMITS: Final = ATTEMPT.follow(AttemptState.LEASED, "start", "commit")
_ABORTS: Final = ATTEMPT.follow(AttemptState.LEASED, "abort")
_DONE: Final = ATTEMPT.follow(AttemptState.COMMITTED, "finish").target
_WITHDRAWN: Final = "the job was asked to end before this effect was called again, and nothing had happened"


def call(pictures: Pictures, request: CallEffect, now: Now) -> Decision:  # noqa: PLR0911 (each way)
    """Give the right to call an effect, or say what to do instead."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    job, activity, found = picture.job, picture.activities.get(request.place), _found(picture, request.place)
    if job.state == JobState.CANCELLING and not request.asked:
        return _withdrawn(picture, request, found, now)
    if job.hold is not None:
        return Plan((), Hold(job.hold))
    if activity is None and found is None:
        return _begin(pictures, picture, request, now)
    if activity is None or activity.kind != "effect" or not activity.is_open:
        return broken(job.job_id, f"{request.place[1]} is called, and is over or was never an effect")
    if found is None:
        return Plan((), Instead.TAKE)
    row, intent = found.row, request.intent
    if (row.occupies, row.args_hash) != (intent.key, intent.args_hash):
        return Plan((), Differs(f"{row.key} with arguments {row.args_hash}"))
    own = row.lease_id == request.last
    if row.phase == Phase.RESTING:
        left = 0 if own else (row.due_at or 0) - now.wall
        return Plan((), Later(left)) if left > 0 else _again(request, row, activity, now)
    if row.phase == Phase.CALLING and own:
        return Plan((_granted(row, request, now),), Granted(row.calls))
    return Plan(park(picture, request.fence, request.chain, request.at, row, now), Instead.WAIT)


def _found(picture: Picture, place: Place) -> OpenEffect | None:
    return None if picture.effects is None else picture.effects.get(place)


def _begin(pictures: Pictures, picture: Picture, request: CallEffect, now: Now) -> Decision:
    """Open an effect that was not called before, unless its key is taken."""
    intent, owner = request.intent, pictures.occupied.get(request.intent.key)
    if owner is None:
        return _open(picture, request, now)
    if owner.args_hash != intent.args_hash:
        return _known(picture, request, owner, None, _conflict(owner, request), now)
    if owner.is_open:
        return Plan((), Occupied(owner.exec_id))
    return _known(picture, request, owner, owner.result, owner.error, now)


def _open(picture: Picture, request: CallEffect, now: Now) -> Plan:
    """Return the intent: attempt COMMITTED, the key taken, the step open, the fact."""
    job, intent, unit = picture.job, request.intent, unit_of(request.place)
    exec_id = exec_id_of(job.job_id, unit, FIRST)
    row = EffectRow(
        exec_id, *intent.key, intent.args_hash, job.job_id, unit, FIRST, _COMMITS.target, Phase.CALLING,
        None, intent.arguments, None, None, intent.options, request.lease.lease_id, 1, 0, None, None,
        now.wall, now.wall, None, None, 1,
    )  # fmt: skip
    activity = Activity(job.job_id, *request.place, "effect", BEGUN, OPENED, 1, request.fence.attempt)
    after = job._replace(semaphore=job.semaphore + 1, rev=job.rev + 1)
    told = _intent(request, exec_id, _COMMITS.path)
    return Plan(
        (
            AppendFact(told),
            InsertEffect(row, request.lease),
            InsertActivity(activity, now.wall, None, None),
            MoveJob(after, job.rev, None, NO_VALUES),
        ),
        Granted(row.calls),
    )


def _again(request: CallEffect, row: EffectRow, activity: Activity, now: Now) -> Plan:
    """Return a further call: a new lease, and an entry of leg 1."""
    after = row._replace(phase=Phase.CALLING, calls=row.calls + 1, due_at=None, doubt=None)
    _verdict, ledger = first_entry(activity.ledger)
    counted = activity._replace(ledger=ledger, rev=activity.rev + 1)
    about = {"effect": row.unit, "call": after.calls, "lease": request.lease.lease_id}
    fact = _fact(request, "call", about)
    writes: tuple[Write, ...] = (AppendFact(fact), _granted(after, request, now))
    if ledger != activity.ledger:
        writes = (*writes, MoveActivity(counted, activity.rev, now.wall, None, None))
    return Plan(writes, Granted(after.calls))


def _granted(row: EffectRow, request: CallEffect, now: Now) -> MoveEffect:
    leased = row._replace(lease_id=request.lease.lease_id, called_at=now.wall, rev=row.rev + 1)
    return MoveEffect(leased, row.rev, request.lease)


def _known(
    picture: Picture,
    request: CallEffect,
    owner: EffectRow,
    result: str | None,
    error: str | None,
    now: Now,
) -> Decision:
    """Record what another attempt has done under the key; this one is aborted as a duplicate."""
    job, unit = picture.job, unit_of(request.place)
    exec_id = exec_id_of(job.job_id, unit, FIRST)
    message = message_of(job, taken_from(exec_id), request.place, result, error, now)
    taken = _taken(picture, request, None, message, now)
    if isinstance(taken, Refusal):
        return taken
    told = _intent(request, exec_id, _ABORTS.path, owner=owner.exec_id)
    attempt = InsertAttempt(
        job.job_id, FIRST, _ABORTS.target, AbortReason.DUPLICATE_COMMIT, message.guid, unit
    )
    return Plan((AppendFact(told), attempt, InsertMessage(message), *taken), Known(result, error))


def _conflict(owner: EffectRow, request: CallEffect) -> str:
    error = EffectConflict(
        f"{owner.effect} was called under the key {owner.key!r} with other arguments: {owner.args_hash} by "
        f"{owner.exec_id}, {request.intent.args_hash} now; another act needs another key"
    )
    return error_text(EffectConflict.__name__, error.message, error.code)


def end(pictures: Pictures, request: EndEffect, now: Now) -> Decision:
    """Write what came of a call: the effect is DONE, and its step has its answer."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    row, activity = _called(picture, request.place, request.lease_id), picture.activities.get(request.place)
    if row is None or activity is None:
        return stale(request.fence)
    done = ended(row, request.outcome, request.result, request.error, BY_CALL, now)
    message = message_of(picture.job, row.exec_id, request.place, request.result, request.error, now)
    taken = _taken(picture, request, activity, message, now)
    if isinstance(taken, Refusal):
        return taken
    return Plan((MoveEffect(done, row.rev), InsertMessage(message), *taken))


def rest(pictures: Pictures, request: RestEffect, now: Now) -> Decision:
    """Write that a call has done nothing, and from when on it may be made again."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    row = _called(picture, request.place, request.lease_id)
    if row is None:
        return stale(request.fence)
    after = row._replace(phase=Phase.RESTING, due_at=now.wall + request.delay_ms, rev=row.rev + 1)
    return Plan((MoveEffect(after, row.rev),))


def _called(picture: Picture, place: Place, lease_id: str) -> EffectRow | None:
    """Return the effect whose last call this is, unless somebody has said something about it since."""
    found = _found(picture, place)
    if found is None or found.row.phase != Phase.CALLING or found.row.lease_id != lease_id:
        return None
    return found.row


def _withdrawn(picture: Picture, request: CallEffect, found: OpenEffect | None, now: Now) -> Decision:
    """Say that the job is to end; an effect of which nothing has happened ends with it."""
    activity = picture.activities.get(request.place)
    if found is None or found.row.phase != Phase.RESTING or activity is None:
        return Plan((), JobState.CANCELLING)
    error = not_done(found.row, _WITHDRAWN)
    done = ended(found.row, Came.NOT_DONE, None, error, BY_CALL, now)
    message = message_of(picture.job, found.row.exec_id, request.place, None, error, now)
    taken = _taken(picture, request, activity, message, now)
    if isinstance(taken, Refusal):
        return taken
    writes = (MoveEffect(done, found.row.rev), InsertMessage(message), *taken)
    return Plan(writes, JobState.CANCELLING)


def ended(
    row: EffectRow, outcome: Came, result: str | None, error: str | None, by: str, now: Now
) -> EffectRow:
    """Return the row of an effect that is DONE."""
    return row._replace(
        state=_DONE, phase=Phase.ENDED, outcome=outcome, result=result, error=error, due_at=None,
        ended_at=now.wall, ended_by=by, rev=row.rev + 1,
    )  # fmt: skip


def not_done(row: EffectRow, why: str) -> str:
    """Return the error of an effect that was tried as often as it may be and has not happened."""
    return error_text("NotDone", f"{row.effect} was not done: {why}", Came.NOT_DONE, row.calls)


def error_text(kind: str, message: str, code: str, tries: int = 1) -> str:
    """Return an error in the form in which the errors of all steps are kept."""
    about = {"type": kind, "message": message, "code": code, "tries": tries}
    return msgspec.json.encode(about).decode()


def message_of(
    job: JobFacts, guid: str, place: Place, result: str | None, error: str | None, now: Now
) -> Message:
    """Return the message that tells what came of an effect."""
    said = {"value": result} if error is None else {"error": error}
    payload = {name: msgspec.Raw((text or "null").encode()) for name, text in said.items()}
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    text = msgspec.json.encode(payload).decode()
    return Message(guid, job.job_id, *place, "result", text, None, 0, 0, *inbox)


def _taken(
    picture: Picture,
    request: CallEffect | EndEffect,
    activity: Activity | None,
    message: Message,
    now: Now,
) -> tuple[Write, ...] | Refusal:
    """Answer the step with a message that nobody has seen before."""
    dimension, name, occurrence = request.place
    taking = Taking(request.fence, START, request.chain, request.at, dimension)
    wait = Wait("effect", name, occurrence, None)
    return take(picture, taking, wait, activity, message, now, picture.job)


def _intent(request: CallEffect, exec_id: str, path: str, owner: str = "") -> Fact:
    _tenant, effect, key = request.intent.key
    told: dict[str, object] = {
        "effect": unit_of(request.place),
        "name": effect,
        "key": key,
        "args": request.intent.args_hash,
        "exec": exec_id,
        "moves": path,
    }
    return _fact(request, "intent", {**told, "of": owner} if owner else told)


def _fact(request: CallEffect, kind: str, told: dict[str, object]) -> Fact:
    text = msgspec.json.encode(told).decode()
    return Fact(request.chain, kind, request.at, request.fence.attempt, text)
