"""The entry of a claim: which message drives a job that was put away, counted before any work."""

from __future__ import annotations

from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import AT_BIRTH
from tallystick.core.ledger.decisions import first_to_act
from tallystick.core.lifecycles import ATTEMPT, JOB, AttemptState, JobState
from tallystick.core.pictures import Activity, Message, Now, Picture
from tallystick.core.plans import NO_VALUES, MoveActivity, MoveJob, MoveMessage, Plan, Refusal, Write
from tallystick.core.verbs.settling import entered
from tallystick.errors import TallyError

CLAIMABLE: Final = (JobState.QUEUED, JobState.IN_PROGRESS, JobState.CANCELLING)
"""In which states a job may be claimed: not while another dispatches it, and not when it has ended."""

_BEGUN: Final = ATTEMPT.follow(AttemptState.LEASED, "start").path
CLAIMED_FIRST: Final = msgspec.json.encode(
    {"job": JOB.follow(JobState.QUEUED, "dispatch", "start").path, "attempt": _BEGUN}
).decode()
"""What the fact of a job's first claim says."""
CLAIMED_AGAIN: Final = msgspec.json.encode({"job": JobState.IN_PROGRESS, "attempt": _BEGUN}).decode()


"""What the fact of every later claim says: the job has begun."""


def claim_text(moves: str, lease_id: str, owner: str, *, at_birth: bool = False) -> str:
    """Return what the fact of a claim says: the moves, the lease, and the worker that has it.

    >>> claim_text('{"attempt":"LEASED>IN_PROGRESS"}', "l1", "w")
    '{"attempt":"LEASED>IN_PROGRESS","lease":"l1","by":"w"}'
    """
    born = f',"{AT_BIRTH}":true' if at_birth else ""
    return f'{moves[:-1]},"lease":"{lease_id}","by":"{owner}"{born}}}'


def enter(picture: Picture, now: Now) -> Plan | Refusal:
    """Choose the message that drives a claim and count its entry; the outcome is its `Wake`, or None.

    A job whose digits do not allow that is refused by itself: those that are claimed with it go on.
    """
    try:
        return _enter(picture, now)
    except TallyError as error:
        return Refusal(error)


def _enter(picture: Picture, now: Now) -> Plan | Refusal:
    able = [
        (message, activity)
        for message in picture.messages.values()
        if message.acked_at is None and (message.due_at is None or message.due_at <= now.wall)
        for activity in _entered(picture, message)
    ]
    able.sort(key=lambda each: (each[0].since, each[0].arrived))
    first = first_to_act([message.ledger > 0 for message, _activity in able])
    if first is None:
        return Plan((), None)
    message, activity = able[first]
    job = picture.job
    if message.ledger:
        again = message._replace(redeliveries=message.redeliveries + 1)
        if activity is not None:
            again = again._replace(dimension=activity.dimension, occurrence=activity.occurrence)
        return Plan((MoveMessage(again, message.ledger),), again.as_wake())
    found = entered(job.job_id, message.name, job.root_ledger if activity is None else activity.ledger, 0)
    if isinstance(found, Refusal):
        return found
    begun = message._replace(ledger=found.guid)
    writes: list[Write] = []
    if activity is None:
        after = job._replace(root_ledger=found.activity, rev=job.rev + 1)
        writes.append(MoveJob(after, job.rev, None, NO_VALUES))
    else:
        begun = begun._replace(dimension=activity.dimension, occurrence=activity.occurrence)
        counted = activity._replace(ledger=found.activity, rev=activity.rev + 1)
        writes.append(MoveActivity(counted, activity.rev, now.wall, None, None))
    writes.append(MoveMessage(begun, 0))
    return Plan(tuple(writes), begun.as_wake())


def _entered(picture: Picture, message: Message) -> list[Activity | None]:
    """Return what a message may drive: the root (None), the activity that it names, the first such wait."""
    if message.is_of_root or (message.place is None and message.is_taken):
        return [None]
    if message.kind == "signal" and message.place is None:
        waits = [
            each for each in picture.open_activities() if each.kind == "wait" and each.name == message.name
        ]
        return [min(waits, key=lambda each: (each.dimension, each.occurrence))] if waits else []
    activity = picture.named_by(message)
    if activity is None or (message.ledger == 0 and activity not in picture.open_activities()):
        return []
    return [activity]
