"""What a sentence says of effects: those that are in doubt, and keys that the effects of other jobs have.

Commands that are told are such that the store takes them: a job that ends calls nothing again, and that of
which the job has ended is named by its key.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from tallystick.app.asking.sentence import Sentence, clock_text
from tallystick.core.effects.doubts import AwaitedKey
from tallystick.core.effects.rows import EffectRow, Phase
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.verbs.effects.doubting import LOST, needs_person, why_held
from tallystick.defaults import TENANT
from tallystick.store.api import JobRow
from tallystick.store.inspection import Inspection

_SHOWN: Final = 3


def whether(row: EffectRow) -> str:
    """Return the question about an effect that is open."""
    return f"whether {row.effect} happened under the key {row.key!r} ({row.unit})"


def known_of(row: EffectRow, now: int) -> str:
    """Return what is known of an effect that is open, and what brings the answer."""
    match Phase(row.phase):
        case Phase.CALLING:
            ends_at = row.called_at + row.rules.lease_ms
            if ends_at > now:
                return f"a call may be under way until {clock_text(ends_at)}"
            return f"its call was to end by {clock_text(ends_at)}, and the next sweep of a worker sees to it"
        case Phase.RESTING:
            before = "nothing has happened so far" if row.doubt is None else row.doubt
            if row.due_at is not None and row.due_at <= now:
                since = clock_text(row.due_at)
                return f"{before}; it may be called again since {since}, when its function comes back to it"
            return f"{before}; it may be called again from {clock_text(row.due_at)} on"
        case _:
            return f"{row.doubt or LOST}; {_answer_of(row, now)}"


def _answer_of(row: EffectRow, now: int) -> str:
    """Return how it will be known what came of an effect in doubt."""
    if row.due_at is None:
        return "only a person can say"
    if row.due_at <= now:
        since = clock_text(row.due_at)
        return f"its probe has been due since {since}, and a worker that declares {row.effect} asks it"
    if row.probes:
        times = "once" if row.probes == 1 else f"{row.probes} times"
        return f"its probe was asked {times} and is asked again at {clock_text(row.due_at)}"
    return f"its probe is asked at {clock_text(row.due_at)}"


def moves_at(row: EffectRow, now: int) -> int | None:
    """Return when something happens to an effect that is open by itself; None if nothing will, or is due."""
    at = row.called_at + row.rules.lease_ms if row.phase == Phase.CALLING else row.due_at
    return None if at is None or at <= now else at


def doubts_text(rows: Sequence[EffectRow], now: int) -> str:
    """Return a part of a sentence about each of the first effects, and how many more there are."""
    told = [f"; it is unknown {whether(row)}: {known_of(row, now)}" for row in rows[:_SHOWN]]
    more = len(rows) - _SHOWN
    return "".join([*told, f"; and so of {more} more"] if more > 0 else told)


def rests_text(rows: Sequence[EffectRow], now: int) -> str:
    """Return a part of a sentence about the effects of a job that have done nothing and are called again."""
    rests = [row for row in rows if row.phase == Phase.RESTING and row.doubt is None]
    return "".join(
        f"; {row.effect} under the key {row.key!r}: {known_of(row, now)}" for row in rests[:_SHOWN]
    )


def awaited_text(key: AwaitedKey, now: int) -> str:
    """Return a part of a sentence about a key that another job has, and where the effect of that stands."""
    row = key.owner
    text = f"; job {row.job_id} has the key {row.key!r} of {row.effect} ({row.exec_id}): {known_of(row, now)}"
    if row.phase != Phase.IN_DOUBT or not _is_over(key.job_state):
        return text
    return f"{text}; that job has ended, and {_resolving(row, key.job_state)} answers for it"


def doubts_actions(rows: Sequence[EffectRow], job_state: str | None) -> tuple[str, ...]:
    """Return the commands that answer for effects of one job, and what asks their probes."""
    answered = [row for row in rows if row.phase != Phase.CALLING]
    commands = [
        command
        for row in answered[:_SHOWN]
        for command in resolving_commands(row, job_state, is_alone=len(answered) == 1)
    ]
    # Workers ask probes, and put what was called in doubt when its call is over.
    works = any(not needs_person(row) for row in rows)
    return (*commands, "tally work APP") if works else tuple(commands)


def awaited_actions(key: AwaitedKey) -> tuple[str, ...]:
    """Return the commands that help a job which waits for a key that another job has."""
    row, looks = key.owner, f"tally why {key.owner.job_id}"
    if row.phase != Phase.IN_DOUBT:
        return (looks,)
    works = () if needs_person(row) else ("tally work APP",)
    # What else that job has in doubt is not known here.
    return (looks, *resolving_commands(row, key.job_state, is_alone=False), *works)


def resolving_commands(row: EffectRow, job_state: str | None, *, is_alone: bool = True) -> tuple[str, ...]:
    """Return the commands by which a person says what came of an effect; `is_alone`: its job has no other."""
    begin, says = _resolving(row, job_state), ["--happened JSON", "--did-not-happen"]
    if not is_alone and "--key" not in begin:
        begin += f" --effect {shlex.quote(row.unit.partition('/')[2])}"
    if not _is_over(job_state) and job_state != JobState.CANCELLING:
        says.append("--retry")
    return tuple(f"{begin} {said}" for said in says)


def _resolving(row: EffectRow, job_state: str | None) -> str:
    """Return how a command begins that names an effect: by its key alone if its job has ended."""
    is_by_key = _is_over(job_state) and row.tenant_id == TENANT
    return f"tally resolve --key {shlex.quote(row.key)}" if is_by_key else f"tally resolve {row.job_id}"


def _is_over(job_state: str | None) -> bool:
    return job_state is None or JobState(job_state) in JOB.final


def held_in_doubt(row: JobRow, doubts: Sequence[EffectRow], now: int) -> Sentence:
    """Return the sentence about a job that is held until a person has said what came of its effects.

    The reason of the hold may name an effect that was answered since, so it is told from the effects.
    """
    asked = [each for each in doubts if needs_person(each)]
    reason = why_held(asked[0]) if asked else row.hold_reason
    others = [each for each in doubts if each not in asked[:1]]
    remedy, actions = "say whether its effect has happened", doubts_actions(doubts, row.state)
    if not asked or any(each.rules.probe for each in asked):
        remedy += ", or resume it to have its probe asked again"
        actions = (*actions, f"tally resume {row.job_id}")
    since = clock_text(row.updated_at)
    return Sentence(
        f"it has been held ({row.hold}) since {since}: {reason}{doubts_text(others, now)}; {remedy}",
        row.updated_at,
        None,
        (*actions, f"tally cancel {row.job_id}"),
    )


def late_text(inspection: Inspection, job_id: str) -> str:
    """Return what calls of effects have said too late, for the person who is to answer."""
    late = inspection.late_reports(job_id)
    return "".join(f"; a report that came too late at {clock_text(at)}: {report}" for at, report in late)
