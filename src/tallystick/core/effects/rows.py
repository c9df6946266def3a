"""What a decision about an effect may look at: the row that its key lives in, and which call may use it.

The row is written with the intent and outlives its job. Only rows that are open, and those of effects that
have happened, occupy a key.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tallystick.core.lease import CALL_SLACK_MS
from tallystick.core.lifecycles import AttemptState
from tallystick.core.pictures import Place
from tallystick.core.remote.rows import place_of_step, step_id_of

EffectKey: TypeAlias = tuple[str, str, str]
"""Tenant, effect and key: what at most one attempt holds at a time."""


class Phase(StrEnum):
    """Where an effect stands between its intent and its end."""

    # A call may be under way, until its lease ends.
    CALLING = "CALLING"
    # It may be called, from `due_at` on. Nothing has happened so far, unless a person let it be called again
    # in doubt: then that doubt is still there.
    RESTING = "RESTING"
    # A call was made, and its outcome is unknown; `due_at` says when its probe is asked.
    IN_DOUBT = "IN_DOUBT"
    ENDED = "ENDED"


class Came(StrEnum):
    """What came of an effect."""

    HAPPENED = "HAPPENED"
    REFUSED = "REFUSED"
    NOT_DONE = "NOT_DONE"


class EffectRules(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an effect was declared with, as its row keeps it."""

    timeout_ms: int
    tries: int = 1
    settle_ms: int = 0
    probe: bool = False
    keep_refusals: bool = False

    @property
    def lease_ms(self) -> int:
        """Return how long the right to one call lasts: its time, and a little to begin it."""
        return self.timeout_ms + CALL_SLACK_MS

    def written(self) -> str:
        """Return the rules as a row keeps them."""
        return msgspec.json.encode(self).decode()


class EffectRow(NamedTuple):
    """One attempt at an effect, and the home of its key."""

    exec_id: str
    tenant_id: str
    effect: str
    key: str
    args_hash: str
    job_id: str
    unit: str
    attempt: int
    state: str
    phase: str
    outcome: str | None
    arguments: str
    result: str | None
    error: str | None
    options: str
    # Of the last call, how many there were, and how often the probe was asked since.
    lease_id: str
    calls: int
    probes: int
    due_at: int | None
    doubt: str | None
    called_at: int
    created_at: int
    ended_at: int | None
    ended_by: str | None
    rev: int
    # Whether a refusal keeps its key.
    kept: int = 0

    @property
    def place(self) -> Place:
        """Return where its step stands in its job."""
        return _place_of(self.unit)

    @property
    def occupies(self) -> EffectKey:
        """Return the key that it holds."""
        return (self.tenant_id, self.effect, self.key)

    @property
    def is_open(self) -> bool:
        """Tell whether nothing has come of it yet."""
        return self.state == AttemptState.COMMITTED

    @property
    def may_have_happened(self) -> bool:
        """Tell whether a call was made, or is under way, of which it is not known that it did nothing."""
        return self.phase != Phase.RESTING or self.doubt is not None

    @property
    def is_occupying(self) -> bool:
        """Tell whether its key is taken by it."""
        return self.is_open or self.outcome == Came.HAPPENED or bool(self.kept)

    @property
    def rules(self) -> EffectRules:
        """Return what it was declared with."""
        return msgspec.json.decode(self.options, type=EffectRules)


class OpenEffect(NamedTuple):
    """An effect that is open, and whether the lease of its last call is live."""

    row: EffectRow
    live: bool

    @property
    def is_doubtful(self) -> bool:
        """Tell whether a call was made, is over, and its outcome is unknown."""
        if self.row.phase == Phase.CALLING:
            return not self.live
        return self.row.may_have_happened


def unit_of(place: Place) -> str:
    """Return how attempts and keys name the step of an effect.

    >>> unit_of((0, "charge", 1)), exec_id_of("j1", "0/charge#1", 1)
    ('0/charge#1', 'j1:0/charge#1:1')
    """
    return step_id_of(place)


def _place_of(unit: str) -> Place:
    place = place_of_step(unit)
    assert place is not None, "the unit of an effect names its step"
    return place


def exec_id_of(job_id: str, unit: str, attempt: int) -> str:
    """Return the name of an attempt, as specification 002 spells it."""
    return f"{job_id}:{unit}:{attempt}"


def taken_from(exec_id: str) -> str:
    """Return the identifier of the message that brings what another attempt has done under the same key.

    An attempt that another came before is driven by that: it names the other one so.
    """
    return f"effect:{exec_id}"


FIRST: Final = 1
"""The number of the first attempt at an effect; a job makes another only if it has lost the key before."""


def answer_of(job_id: str, place: Place) -> str:
    """Return the identifier of the message that tells what came of an effect.

    A step takes one answer, so it is called by the first attempt, whichever of them has acted.
    """
    return exec_id_of(job_id, unit_of(place), FIRST)


class Waiter(NamedTuple):
    """A job that came to a key which another attempt has, and waits at this step until that has ended."""

    job_id: str
    unit: str

    @property
    def place(self) -> Place:
        """Return where its step stands."""
        return _place_of(self.unit)


BY_CALL: Final = "call"
"""The author of the outcome of an effect whose call has returned."""
BY_PROBE: Final = "probe"
