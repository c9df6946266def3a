"""Effects against their facts: what a key has come to is what its job says, and each names the other.

The fact of an intent says under which key, with which arguments and rules an effect may be called; each
further call has a fact, an answer of a probe or of a person has one, and the result is the fact of the step;
once the job has ended, an answer is an act.
The row of the key and the attempt at the effect are made again from these. When the job has been removed, the
line of its removal holds the key (`kept_keys.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from tallystick.core.audit.book import AttemptRow, Findings
from tallystick.core.audit.fingerprints import INTENDED, INTENDED_AT, is_known, of_effect, of_intent
from tallystick.core.audit.job_view import AbortReason
from tallystick.core.effects.after_end import wrong_after_end
from tallystick.core.effects.requests import Says
from tallystick.core.effects.rows import (
    BY_CALL,
    FIRST,
    Came,
    EffectRow,
    Phase,
    exec_id_of,
    taken_from,
)
from tallystick.core.lifecycles import AttemptState
from tallystick.core.pictures import CANCEL, Place
from tallystick.core.remote.answers import printed
from tallystick.core.remote.rows import place_of_step, step_id_of
from tallystick.core.values import StoredEvent

_KINDS: Final = frozenset({"intent", "call", "resolve", "doubt", "hold"})
_TAKEN: Final = (AttemptState.ABORTED, AbortReason.DUPLICATE_COMMIT)


class ToldEffect:
    """What the facts of a job say of one of its effects."""

    __slots__ = ("about", "answers", "at_attempt", "began_in", "calls", "is_doubted", "is_retried")

    def __init__(self, about: dict[str, object], attempt: int) -> None:
        """Begin with the intent, in an attempt at the job."""
        self.about = about
        self.calls = 1
        self.at_attempt = self.began_in = attempt
        # A person let it be called again in doubt, which is still there.
        self.is_retried = False
        # Its last call is told to be in doubt, and nothing was said of it since.
        self.is_doubted = False
        # What may have ended it: an answer that lets it be called again has not.
        self.answers: frozenset[object] = frozenset({BY_CALL})

    def call(self, attempt: int) -> None:
        """Take the fact of a further call."""
        self.calls += 1
        self.at_attempt = attempt
        self.is_doubted = False
        self.answers = frozenset({BY_CALL})

    def answer(self, data: dict[str, object]) -> None:
        """Take what a probe or a person has said."""
        if data.get("says") == Says.HAPPENED:
            self.answers = frozenset({data.get("by")})
        elif data.get("says") == Says.DID_NOT_HAPPEN:
            self.answers |= {data.get("by")}
        self.is_retried = data.get("says") == Says.RETRY
        self.is_doubted = False

    @property
    def is_taken_over(self) -> bool:
        """Tell whether another attempt had the key, so that this one was aborted."""
        return "of" in self.about


class ToldEffects(dict[str, list[ToldEffect]]):
    """What the facts of a job say of its attempts at effects, by their units; the last may have the key."""

    def read(self, fact: StoredEvent, data: dict[str, object]) -> None:
        """Take a fact, if it is about an effect."""
        if fact.type not in _KINDS:
            return
        unit = str(data.get("effect"))
        if fact.type == "intent":
            self.setdefault(unit, []).append(ToldEffect(data, fact.attempt))
        elif unit in self and fact.type == "call":
            self[unit][-1].call(fact.attempt)
        elif unit in self and fact.type == "resolve":
            self[unit][-1].answer(data)
        elif unit in self:
            self[unit][-1].is_doubted = True

    def owner_of(self, unit: str) -> str | None:
        """Return the attempt that has the key to which an effect of this job came last, if another has it."""
        told = self[unit][-1] if unit in self else None
        return str(told.about["of"]) if told is not None and told.is_taken_over else None


class AfterEnd(NamedTuple):
    """When a job and its turns have ended, and how to look for what acts say of effects that it left open."""

    completed_at: int | None
    turns: Mapping[int, int | None]
    acts: Callable[[], frozenset[str]]


class EffectsOfJob:
    """The effects of one job: keys, attempts and facts, compared in both directions."""

    def __init__(
        self,
        job_id: str,
        tenant_id: str,
        told: ToldEffects,
        owners: Mapping[int, str | None],
        results: Mapping[Place, int],
        answer: Callable[[Place], str | None],
        after_end: AfterEnd,
        findings: Findings,
        *,
        is_free: bool,
    ) -> None:
        """Take what the facts say: the effects, workers of attempts at the job, what steps returned.

        `answer` finds what a message tells a step of its effect.
        """
        self._job_id, self._tenant_id = job_id, tenant_id
        self._told, self._owners, self._results = told, owners, results
        self._answer, self._after_end = answer, after_end
        # The job is neither held nor to end.
        self._is_free = is_free
        self._note = findings.note

    def judge(
        self,
        keys: Sequence[EffectRow],
        attempts: Mapping[str, Sequence[AttemptRow]],
        steps: set[Place],
        turns_gone: int,
    ) -> None:
        """Compare everything; of turns that were trimmed the keys are left, and no fact tells of them."""
        for name, unit in (
            *((f"the key {key.key!r} of {key.exec_id} is kept", key.unit) for key in keys),
            *((f"there is an attempt at {unit}", unit) for unit in attempts),
            *((f"effect {place[1]}#{place[2]} was called", step_id_of(place)) for place in sorted(steps)),
        ):
            place = place_of_step(unit)
            is_gone = place is not None and place[0] < turns_gone
            if unit not in self._told and not is_gone:
                self._note("effects", f"{name}, and no fact intends it")
        by_unit = {key.unit: key for key in keys}
        for unit, intents in self._told.items():
            for wrong in self._wrong_unit(unit, intents, by_unit.get(unit), attempts.get(unit, ())):
                self._note("effects", f"{unit}: {wrong}")

    def _wrong_unit(
        self, unit: str, intents: Sequence[ToldEffect], key: EffectRow | None, rows: Sequence[AttemptRow]
    ) -> Iterator[str]:
        """Say what is wrong about the attempts at one effect: all but the last have lost the key."""
        if [row.attempt for row in rows] != list(range(FIRST, len(intents) + FIRST)):
            yield f"{len(rows)} attempts are there, and {len(intents)} were intended"
            return
        if key is not None and intents[-1].is_taken_over:
            yield f"the key {key.key!r} is kept, and another attempt had it"
        for told, row in zip(intents, rows, strict=True):
            yield from self._wrong(unit, told, key, row)

    def _wrong(self, unit: str, told: ToldEffect, key: EffectRow | None, row: AttemptRow) -> Iterator[str]:
        exec_id = exec_id_of(self._job_id, unit, row.attempt)
        about = told.about
        if about.get("exec") != exec_id:
            yield f"its intent is of {about.get('exec')}"
        if row.started_at != about.get(INTENDED_AT, row.started_at):
            yield f"it began at {row.started_at}, its intent says {about[INTENDED_AT]}"
        if told.is_taken_over:
            yield from _wrong_duplicate(str(about["of"]), row)
            return
        if key is None:
            yield f"the key {about.get('key')!r} is not kept"
            return
        expected = (exec_id, self._tenant_id, about.get("name"), about.get("key"), about.get("args"))
        if key[:8] != (*expected, self._job_id, unit, row.attempt):
            yield "its key is not what its intent says"
        printed = about.get(INTENDED)
        if is_known(printed) and printed != of_intent(key.arguments, key.options):
            yield "its arguments or rules are not what its intent says"
        yield from self._wrong_end(key, told)
        yield from self._wrong_attempt(key, told, row)

    def _wrong_end(self, key: EffectRow, told: ToldEffect) -> Iterator[str]:
        """Say what is wrong about what came of it."""
        is_over = key.state == AttemptState.DONE
        ended = (key.phase == Phase.ENDED, key.outcome is not None, key.ended_at is not None)
        if ended != (is_over,) * 3 or (key.ended_by is not None) != is_over:
            yield f"it is {key.state}, {key.phase}, and has the outcome {key.outcome}"
        if key.phase in (Phase.ENDED, Phase.CALLING) and key.due_at is not None:
            yield f"it is {key.phase} and due"
        if key.kept and key.outcome != Came.REFUSED:
            yield "it keeps a refusal, and was not refused"
        if key.calls != told.calls:
            yield f"it counts {key.calls} calls, the facts {told.calls}"
        if not (key.created_at <= key.called_at <= (key.ended_at or key.called_at)):
            yield "it was called before it was intended, or after its end"
        if is_over:
            yield from self._wrong_outcome(key, told)
        else:
            yield from _wrong_open(key, told, is_free=self._is_free)

    def _wrong_outcome(self, key: EffectRow, told: ToldEffect) -> Iterator[str]:
        """Say what is wrong about the result of an effect that is over, or about its author."""
        if key.outcome != _came(key.error):
            yield f"it has the outcome {key.outcome}, and its result or error says otherwise"
        if (key.result is None) != (key.outcome != Came.HAPPENED):
            yield f"it is {key.outcome} and its result says otherwise"
        said = self._results.get(key.place)
        if said is not None and said != hash((key.result or "null") if key.error is None else key.error):
            yield "its result or error is not what its step has returned"
        if said is not None and key.ended_by not in told.answers:
            yield f"it was ended by {key.ended_by}, the facts say otherwise"
        if said is None:
            yield from self._wrong_untaken(key, told)

    def _wrong_untaken(self, key: EffectRow, told: ToldEffect) -> Iterator[str]:
        """Say what is wrong about an effect that is over and of which its step has not heard."""
        answer = self._answer(key.place)
        if answer is not None:
            if printed(answer) not in (None, of_effect(key)):
                yield "its row is not what the message says that waits for its step"
            if key.ended_by not in told.answers:
                yield f"it was ended by {key.ended_by}, the facts say otherwise"
            return
        after = self._after_end
        ended_at = after.turns.get(key.place[0], after.completed_at)
        if ended_at is None:
            yield "it is over, and no message tells its step"
        else:
            yield from wrong_after_end(key, ended_at, after.acts())

    def _wrong_attempt(self, key: EffectRow, told: ToldEffect, row: AttemptRow) -> Iterator[str]:
        """Say what is wrong about the attempt, which the row of the key says again."""
        said = (row.status, row.lease_id, row.started_at, row.finished_at)
        if said != (key.state, key.lease_id, key.created_at, key.ended_at):
            yield "its attempt and its key say different things"
        if (row.reason, row.charged, row.guid) != (None, False, key.exec_id):
            yield "its attempt has a reason, is charged, or was driven by another message"
        owner = self._owners.get(told.at_attempt)
        if owner is not None and row.lease_owner != owner:
            yield f"it was called by {row.lease_owner}, its job was run by {owner}"


def _wrong_open(key: EffectRow, told: ToldEffect, *, is_free: bool) -> Iterator[str]:
    """Say what is wrong about where an effect stands that is open: by that it is called again, or asked for.

    Only a person lets it be called again in doubt; and in doubt without an instant it waits for a person: a
    job that `is_free` would be held.
    """
    if (key.result, key.error) != (None, None):
        yield "it is open and has a result or an error"
    resting, doubtful = key.phase == Phase.RESTING, key.phase == Phase.IN_DOUBT
    asked = key.due_at is not None or key.probes > 0
    if not (resting or doubtful or key.phase == Phase.CALLING):
        yield f"it is {key.phase}, and no effect can be"
    elif resting and key.due_at is None:
        yield "it is to be called again, and never due"
    elif (key.doubt is not None) != (doubtful or told.is_retried):
        yield f"it is {key.phase} and its doubt is {key.doubt}"
    elif told.is_doubted and resting:
        yield "it is to be called again, and its last call is told to be in doubt"
    elif doubtful and not told.is_doubted and not key.rules.probe and is_free:
        yield "it is in doubt, and no fact says so"
    elif doubtful and asked != key.rules.probe:
        yield f"it is in doubt, due at {key.due_at}, and its probe was asked {key.probes} times"
    if key.probes < 0 or (key.probes and not key.rules.probe):
        yield f"its probe was asked {key.probes} times"


def _wrong_duplicate(owner: str, row: AttemptRow) -> Iterator[str]:
    """Say what is wrong about an attempt that came to a key which another one has."""
    said = (row.status, row.reason, row.charged, row.guid, row.lease_id, row.lease_owner)
    if said != (*_TAKEN, False, taken_from(owner), CANCEL, CANCEL) or row.started_at != row.finished_at:
        yield "its attempt is not that of an effect which another attempt has done"


def _came(error: str | None) -> Came:
    """Return the outcome that an error tells."""
    if error is None:
        return Came.HAPPENED
    try:
        code = msgspec.json.decode(error, type=dict[str, object]).get("code")
    except msgspec.DecodeError:
        return Came.REFUSED
    return Came.NOT_DONE if code == Came.NOT_DONE else Came.REFUSED
