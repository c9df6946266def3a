"""What an effect has come to: its row, the answer to its step, and the word to all that wait for its key."""

from __future__ import annotations

from typing import Final

from tallystick.core.audit.fingerprints import of_effect
from tallystick.core.effects.rows import Came, EffectRow, Phase, answer_of, taken_from
from tallystick.core.lifecycles import ATTEMPT, AttemptState
from tallystick.core.pictures import JobFacts, Message, Now, Pictures, Place
from tallystick.core.plans import InsertMessage, MoveEffect, Write
from tallystick.core.remote.answers import answer_text
from tallystick.core.verbs.protocol.remote import wake

_DONE: Final = ATTEMPT.follow(AttemptState.COMMITTED, "finish").target


def ended(
    row: EffectRow, outcome: Came, result: str | None, error: str | None, by: str, now: Now
) -> EffectRow:
    """Return the row of an effect that is DONE."""
    return row._replace(
        state=_DONE, phase=Phase.ENDED, outcome=outcome, result=result, error=error, due_at=None,
        ended_at=now.wall, ended_by=by, rev=row.rev + 1,
        kept=int(outcome is Came.REFUSED and row.rules.keep_refusals),
    )  # fmt: skip


def said_of(done: EffectRow) -> str:
    """Return what a message tells the job of an effect that is over; others hear the outcome alone."""
    return answer_text(done.result, done.error, of_effect(done))


def message_of(job: JobFacts, guid: str, place: Place, said: str, now: Now) -> Message:
    """Return the message that tells what came of an effect."""
    inbox = (max(now.wall, job.inbox_at), job.inbox_end + 1, None)
    return Message(guid, job.job_id, *place, "result", said, None, 0, 0, *inbox)


def over(pictures: Pictures, row: EffectRow, done: EffectRow, now: Now) -> tuple[Write, ...]:
    """Return the end of an effect, and what all hear of it that wait for its key.

    If it keeps the key they have their answer; else each can go on, and the first to come takes the key.
    """
    return (MoveEffect(done, row.rev), *_told(pictures, done, now))


def _told(pictures: Pictures, done: EffectRow, now: Now) -> tuple[Write, ...]:
    """Return what those hear that wait: never the job itself, which calls one key after the other."""
    writes: list[Write] = []
    for waiter in sorted(pictures.waiters.get(taken_from(done.exec_id), ())):
        picture = pictures.get(waiter.job_id)
        if picture is None:
            continue
        activity = picture.activities.get(waiter.place)
        if activity is None or not activity.is_open:
            continue
        job, guid = picture.job, taken_from(answer_of(waiter.job_id, waiter.place))
        if guid in picture.messages:
            continue
        if done.is_occupying:
            message = message_of(job, guid, waiter.place, answer_text(done.result, done.error), now)
            job = job._replace(inbox_end=message.arrived, inbox_at=message.created_at)
            writes.append(InsertMessage(message))
        # One that runs looks for itself when it comes to its effect.
        writes += wake(job, now) if picture.lease is None else ()
    return tuple(writes)
