"""Requests about effects. Each is one guarded change; a refused one changes nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from tallystick.core.chain import Chain
from tallystick.core.effects.rows import Came, EffectKey
from tallystick.core.pictures import Place
from tallystick.core.values import Fence, NewLease


class Intent(NamedTuple):
    """What is to be done, once: under which key, with which arguments, by which rules."""

    key: EffectKey
    args_hash: str
    arguments: str
    options: str


class CallEffect(NamedTuple):
    """Take the right to call an effect: its intent is durable when this is, and no other job has the key.

    The first time the effect opens: attempt COMMITTED, its row with the key, its step and the fact. A later
    call has a new lease. If the right is not to be had, the outcome says what to do instead; what waits for
    others ends the segment in this bundle. `last` is the lease of the last call for which this segment had
    the right: it was not made in its time, or has done nothing and the pause is over, or is still under way,
    and keeps its lease for longer. `asked`: the function knows that its job is to end. `beside`: other calls
    of the segment may go on, so nothing may end it.
    """

    fence: Fence
    chain: Chain
    place: Place
    intent: Intent
    lease: NewLease
    at: int
    asked: bool = False
    last: str = ""
    beside: bool = False


class EndEffect(NamedTuple):
    """Say what came of a call: the effect is DONE, its key kept or free, its step answered, in one bundle.

    Where a doubt was left by an earlier call, one that did nothing ends the segment; not with `beside`.
    """

    fence: Fence
    chain: Chain
    place: Place
    lease_id: str
    outcome: Came
    result: str | None
    error: str | None
    at: int
    beside: bool = False


class RestEffect(NamedTuple):
    """Say that a call has certainly done nothing: it may be made again after a while."""

    fence: Fence
    place: Place
    lease_id: str
    delay_ms: int


class DoubtEffect(NamedTuple):
    """Say that the outcome of a call is unknown, and end the segment until that is known.

    The probe is asked when the call can have no more effect; without a probe the job is held for a person.
    """

    fence: Fence
    chain: Chain
    place: Place
    lease_id: str
    why: str
    at: int


class Says(StrEnum):
    """What a probe or a person says about an effect that is in doubt."""

    HAPPENED = "HAPPENED"
    DID_NOT_HAPPEN = "DID_NOT_HAPPEN"
    # A person alone: call it again, whatever happened.
    RETRY = "RETRY"
    # A probe alone: it cannot tell; or it has raised, which is no answer, and is asked again for a while.
    UNKNOWN = "UNKNOWN"
    LATER = "LATER"


class TakeProbe(NamedTuple):
    """Take the right to ask the probe of an effect, for a while; the outcome is its row, or None."""

    job_id: str
    unit: str
    rev: int
    lease_ms: int


class SettleEffect(NamedTuple):
    """Say what came of an effect that is in doubt. The outcome is a `Settled`.

    A person names it by its unit or its key, or not at all if the job has one; a probe by its unit and the
    revision under which it was asked. Nothing is written while a holder is live.
    """

    job_id: str
    says: Says
    by: str
    unit: str = ""
    key: str = ""
    result: str | None = None
    why: str | None = None
    rev: int | None = None


class PruneEffects(NamedTuple):
    """Remove up to `limit` effects that ended at least `older_ms` ago and whose jobs are gone: keys are free.

    While a job is there its effects are, because its facts tell of them; an open one always is. The outcome
    is how many are gone.
    """

    older_ms: int
    limit: int


class Granted(NamedTuple):
    """The right to call; `calls` counts the one that follows."""

    calls: int


class Known(NamedTuple):
    """What the effect came to, by another attempt under its key, or because it cannot be called."""

    result: str | None
    error: str | None


class Later(NamedTuple):
    """It may be called again in a while."""

    ms: int


class Differs(NamedTuple):
    """The call is not the one that this job has begun here."""

    was: str


class Instead(StrEnum):
    """What a segment does that has no right to call."""

    TAKE = "what came of it is in the inbox: take it"
    WAIT = "the segment is over until its outcome is known"
    BESIDE = "the segment would be over: ask again when no other call of it goes on"


class HeldInDoubt(NamedTuple):
    """The segment is over, and its job is held until a person has said what came of an effect."""

    why: str


class Settled(StrEnum):
    """What became of an answer; the value is the sentence people read."""

    DONE = "written down; the job goes on with it"
    AGAIN = "written down; the effect is called again under the same key"
    ASKED = "its probe is asked again"
    HELD = "the job is held until a person says what happened"
    NOT_IN_DOUBT = "no effect of this job is in doubt"
    SEVERAL = "several effects of this job are in doubt: say which one"
    LIVE = "a worker may be at it right now: try again when its time is over"
    MOVED = "it has gone on since it was asked"
    ENDED = "its job has ended or was asked to, so it is not called again: say whether it happened"


EffectRequest: TypeAlias = CallEffect | EndEffect | RestEffect | DoubtEffect | TakeProbe | SettleEffect
"""Everything that is decided about effects."""


class DueProbe(NamedTuple):
    """An effect whose probe is to be asked now."""

    job_id: str
    unit: str
    rev: int
    effect: str
