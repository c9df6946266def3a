"""Calls of effects: the intent that is durable before a call, and what its holder says afterwards.

COMMITTED is the right to act. Each call has a lease of its own, longer than the call may take, so that no
call is under way when the lease is over. What came of a call is accepted while the job's lease is live, and
only from the holder of the last call.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import INTENDED, INTENDED_AT, of_intent
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.after_end import error_text, not_done
from tallystick.core.effects.requests import (
    CallEffect,
    Differs,
    EndEffect,
    Granted,
    Instead,
    Known,
    Later,
    RestEffect,
)
from tallystick.core.effects.resting import rests_until
from tallystick.core.effects.rows import (
    BY_CALL,
    FIRST,
    Came,
    EffectRow,
    OpenEffect,
    Phase,
    Waiter,
    answer_of,
    exec_id_of,
    taken_from,
    unit_of,
)
from tallystick.core.ledger.marks import OPENED, entries_of, first_entry
from tallystick.core.lifecycles import ATTEMPT, AttemptState, JobState
from tallystick.core.pictures import START, Activity, Message, Now, Picture, Pictures
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
from tallystick.core.remote.answers import answer_text
from tallystick.core.values import Fact, Wait
from tallystick.core.verbs.effects.doubting import called, doubted, park, put_away, waits
from tallystick.core.verbs.effects.outcomes import ended, message_of, over, said_of
from tallystick.core.verbs.holds import Hold
from tallystick.core.verbs.settling import broken, stale
from tallystick.core.verbs.waiting import BEGUN, Taking, take
from tallystick.errors import EffectConflict, LedgerCeiling, ParallelCalls

_COMMITS: Final = ATTEMPT.follow(AttemptState.LEASED, "start", "commit")
_ABORTS: Final = ATTEMPT.follow(AttemptState.LEASED, "abort")
_WITHDRAWN: Final = "the job was asked to end before this effect was called again, and nothing had happened"


def call(pictures: Pictures, request: CallEffect, now: Now) -> Decision:  # noqa: PLR0911 (each way)
    """Give the right to call an effect, or say what to do instead."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    job, activity = picture.job, picture.activities.get(request.place)
    found = picture.open_effects.get(request.place)
    if job.state == JobState.CANCELLING and not request.asked:
        return _withdrawn(pictures, picture, request, found, now)
    if job.hold is not None:
        return Plan((), Hold(job.hold))
    if activity is None and found is None:
        return _begin(pictures, picture, request, None, now)
    if activity is None or activity.kind != "effect" or not activity.is_open:
        return broken(job.job_id, f"{request.place[1]} is called, and is over or was never an effect")
    if found is None:
        # It has its answer, or has lost the key to another attempt, be that over or not.
        answered = any(message.place == request.place for message in picture.messages.values())
        return Plan((), Instead.TAKE) if answered else _begin(pictures, picture, request, activity, now)
    row, intent = found.row, request.intent
    if (row.occupies, row.args_hash) != (intent.key, intent.args_hash):
        return Plan((), Differs(f"{row.key} with arguments {row.args_hash}"))
    own = row.lease_id == request.last
    if row.phase == Phase.RESTING:
        left = 0 if own or row.due_at is None else row.due_at - now.wall
        return Plan((), Later(left)) if left > 0 else _again(request, row, activity, now)
    if row.phase == Phase.CALLING and own:
        return Plan((_granted(row, request, now),), Granted(row.calls))
    return _unknown(picture, request, row, now)


def _unknown(picture: Picture, request: CallEffect, row: EffectRow, now: Now) -> Plan:
    """Wait until it is known what came of a call, unless others of the segment go on."""
    if request.beside:
        return Plan((), Instead.BESIDE)
    return waits(park(picture, request.fence, request.chain, request.at, row, now))


def _begin(
    pictures: Pictures, picture: Picture, request: CallEffect, activity: Activity | None, now: Now
) -> Decision:
    """Call an effect that was not called before, unless its key is taken; `activity` has lost it before."""
    intent, owner = request.intent, pictures.occupied.get(request.intent.key)
    if owner is None:
        return _open(picture, request, activity, now)
    if owner.args_hash != intent.args_hash:
        return _known(picture, request, activity, owner, None, _conflict(owner, request), now)
    if not owner.is_open:
        return _known(picture, request, activity, owner, owner.result, owner.error, now)
    if owner.job_id == picture.job.job_id:
        error = f"{owner.unit} is under way with the key {owner.key!r}: await it before this call"
        return Refusal(ParallelCalls(error, step=request.place[1]))
    if request.beside:
        return Plan((), Instead.BESIDE)
    waiter = Waiter(picture.job.job_id, unit_of(request.place))
    is_known = waiter in pictures.waiters.get(taken_from(owner.exec_id), ())
    lost = () if is_known else _lost(picture, request, activity, owner, now)
    opened = int(activity is None)
    job = picture.job._replace(semaphore=picture.job.semaphore + opened)
    told: dict[str, object] = {
        "effect": waiter.unit,
        "key": owner.key,
        "doubt": f"{owner.exec_id} has the key",
    }
    until = rests_until(picture, now)
    return waits((*lost, *put_away(job, request.fence, request.chain, request.at, told, until, now)))


def _lost(
    picture: Picture, request: CallEffect, activity: Activity | None, owner: EffectRow, now: Now
) -> tuple[Write, ...]:
    """Return an attempt that another came before: it is aborted, and its step waits for the other."""
    told = _intent(request, picture.job.job_id, _number(activity), _ABORTS.path, now, owner=owner.exec_id)
    return (
        AppendFact(told),
        _aborted(picture, request, activity, owner),
        _counted(picture, request, activity, now),
    )


def _number(activity: Activity | None) -> int:
    """Return the number of the next attempt at an effect: each that has lost the key entered leg 1."""
    return FIRST if activity is None else entries_of(activity.ledger) + 1


def _aborted(
    picture: Picture, request: CallEffect, activity: Activity | None, owner: EffectRow
) -> InsertAttempt:
    about = (_number(activity), _ABORTS.target, AbortReason.DUPLICATE_COMMIT, taken_from(owner.exec_id))
    return InsertAttempt(picture.job.job_id, *about, unit_of(request.place))


def _counted(
    picture: Picture, request: CallEffect, activity: Activity | None, now: Now
) -> InsertActivity | MoveActivity:
    """Return the step of an attempt: open, with one more entry of leg 1."""
    if activity is None:
        opened = Activity(
            picture.job.job_id, *request.place, "effect", BEGUN, OPENED, 1, request.fence.attempt
        )
        return InsertActivity(opened, now.wall, None, None)
    verdict, ledger = first_entry(activity.ledger)
    if ledger == activity.ledger:
        raise LedgerCeiling(
            f"{activity.name} has lost its key as often as can be counted: {verdict.value}",
            ledger=f"{ledger:015d}",
        )
    return MoveActivity(
        activity._replace(ledger=ledger, rev=activity.rev + 1), activity.rev, now.wall, None, None
    )


def _open(picture: Picture, request: CallEffect, lost: Activity | None, now: Now) -> Plan:
    """Return the intent: attempt COMMITTED, the key taken, the step open, the fact."""
    job, intent, unit, number = picture.job, request.intent, unit_of(request.place), _number(lost)
    exec_id = exec_id_of(job.job_id, unit, number)
    row = EffectRow(
        exec_id, *intent.key, intent.args_hash, job.job_id, unit, number, _COMMITS.target, Phase.CALLING,
        None, intent.arguments, None, None, intent.options, request.lease.lease_id, 1, 0, None, None,
        now.wall, now.wall, None, None, 1,
    )  # fmt: skip
    told = _intent(request, job.job_id, number, _COMMITS.path, now)
    writes = (AppendFact(told), InsertEffect(row, request.lease), _counted(picture, request, lost, now))
    if lost is not None:
        return Plan(writes, Granted(row.calls))
    after = job._replace(semaphore=job.semaphore + 1, rev=job.rev + 1)
    return Plan((*writes, MoveJob(after, job.rev, None, NO_VALUES)), Granted(row.calls))


def _again(request: CallEffect, row: EffectRow, activity: Activity, now: Now) -> Plan:
    """Return a further call: a new lease, and an entry of leg 1."""
    after = row._replace(phase=Phase.CALLING, calls=row.calls + 1, due_at=None)
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
    activity: Activity | None,
    owner: EffectRow,
    result: str | None,
    error: str | None,
    now: Now,
) -> Decision:
    """Record what another attempt has done under the key; this one is aborted as a duplicate."""
    job = picture.job
    guid = taken_from(answer_of(job.job_id, request.place))
    message = message_of(job, guid, request.place, answer_text(result, error), now)
    taken = _taken(picture, request, activity, message, now)
    if isinstance(taken, Refusal):
        return taken
    told = _intent(request, job.job_id, _number(activity), _ABORTS.path, now, owner=owner.exec_id)
    lost = _aborted(picture, request, activity, owner)
    return Plan((AppendFact(told), lost, InsertMessage(message), *taken), Known(result, error))


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
    row, activity = called(picture, request.place, request.lease_id), picture.activities.get(request.place)
    if row is None:
        return stale(request.fence)
    if row.doubt is not None and request.outcome is not Came.HAPPENED:
        # This call did nothing; the one before it, which a person let be made again, may have.
        if request.beside:
            return Plan((), Instead.BESIDE)
        after = doubted(row, row.doubt, now)
        parked = park(picture, request.fence, request.chain, request.at, after, now)
        return waits((MoveEffect(after, row.rev), *parked))
    done = ended(row, request.outcome, request.result, request.error, BY_CALL, now)
    guid = answer_of(row.job_id, request.place)
    message = message_of(picture.job, guid, request.place, said_of(done), now)
    taken = _taken(picture, request, activity, message, now)
    if isinstance(taken, Refusal):
        return taken
    writes = (*over(pictures, row, done, now), InsertMessage(message), *taken)
    return Plan(writes, wakes=_wakes(pictures, row))


def rest(pictures: Pictures, request: RestEffect, now: Now) -> Decision:
    """Write that a call has done nothing, and from when on it may be made again."""
    picture = pictures.held(request.fence)
    if picture is None:
        return stale(request.fence)
    row = called(picture, request.place, request.lease_id)
    if row is None:
        return stale(request.fence)
    after = row._replace(phase=Phase.RESTING, due_at=now.wall + request.delay_ms, rev=row.rev + 1)
    return Plan((MoveEffect(after, row.rev),))


def _withdrawn(
    pictures: Pictures, picture: Picture, request: CallEffect, found: OpenEffect | None, now: Now
) -> Decision:
    """Say that the job is to end; an effect of which nothing has happened ends with it."""
    activity = picture.activities.get(request.place)
    if found is None or found.row.may_have_happened:
        return Plan((), JobState.CANCELLING)
    error = not_done(found.row, _WITHDRAWN)
    done = ended(found.row, Came.NOT_DONE, None, error, BY_CALL, now)
    guid = answer_of(found.row.job_id, request.place)
    message = message_of(picture.job, guid, request.place, said_of(done), now)
    taken = _taken(picture, request, activity, message, now)
    if isinstance(taken, Refusal):
        return taken
    writes = (*over(pictures, found.row, done, now), InsertMessage(message), *taken)
    return Plan(writes, JobState.CANCELLING, wakes=_wakes(pictures, found.row))


def _wakes(pictures: Pictures, row: EffectRow) -> bool:
    """Tell whether others wait for the key of an effect that ends."""
    return bool(pictures.waiters.get(taken_from(row.exec_id)))


def _taken(
    picture: Picture,
    request: CallEffect | EndEffect,
    activity: Activity | None,
    message: Message,
    now: Now,
) -> tuple[Write, ...] | Refusal:
    """Answer the step with a message that was not seen before."""
    dimension, name, occurrence = request.place
    taking = Taking(request.fence, START, request.chain, request.at, dimension)
    wait = Wait("effect", name, occurrence, None)
    return take(picture, taking, wait, activity, message, now, picture.job)


def _intent(request: CallEffect, job_id: str, number: int, path: str, now: Now, owner: str = "") -> Fact:
    _tenant, effect, key = request.intent.key
    unit = unit_of(request.place)
    told: dict[str, object] = {
        "effect": unit,
        "name": effect,
        "key": key,
        "args": request.intent.args_hash,
        "exec": exec_id_of(job_id, unit, number),
        "moves": path,
        INTENDED_AT: now.wall,
    }
    if owner:
        return _fact(request, "intent", {**told, "of": owner})
    asks = of_intent(request.intent.arguments, request.intent.options)
    return _fact(request, "intent", {**told, INTENDED: asks})


def _fact(request: CallEffect, kind: str, told: dict[str, object]) -> Fact:
    text = msgspec.json.encode(told).decode()
    return Fact(request.chain, kind, request.at, request.fence.attempt, text)
