"""Random effects in the pictures of jobs, and requests about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tallystick.core.chain import Chain
from tallystick.core.effects.requests import (
    CallEffect,
    DoubtEffect,
    EffectRequest,
    EndEffect,
    Intent,
    RestEffect,
    Says,
    SettleEffect,
    TakeProbe,
)
from tallystick.core.effects.rows import Came, EffectRow, EffectRules, OpenEffect, Phase
from tallystick.core.pictures import Activity, Lease, Picture
from tallystick.store.api import Fence, NewLease

if TYPE_CHECKING:
    from tests.core.legal_rows import Chance

JOB_ID = "j"
PLACE = (0, "pay", 1)
KEY = ("default", "pay", "k")
LEASE = NewLease("call-2", "worker", 6_000)


def put_effect(chance: Chance, picture: Picture, *, held: bool = True) -> EffectRow:
    """Draw an effect into a picture; mostly its step is open, and its job is held or not, as asked."""
    phase = chance.one_of(tuple(Phase)[:3])
    tries = 1 + chance.below(3)
    rules = EffectRules(1_000, tries=tries, settle_ms=10, probe=chance.often()).written()
    calls = 1 + chance.below(2)
    due_at = chance.one_of((None, 900, 5_000))
    about = (JOB_ID, "0/pay#1", 1, "COMMITTED", phase, None, "{}", None, None, rules)
    row = EffectRow(
        f"{JOB_ID}:0/pay#1:1", *KEY, "hash", *about, "call-1", calls, chance.below(7), due_at, None, 900, 900,
        None, None, 1 + chance.below(2),
    )  # fmt: skip
    picture.effects = {} if chance.rarely() else {PLACE: OpenEffect(row, chance.often())}
    if not chance.rarely():
        ledger = chance.one_of((1_100_000_000_000, 2_100_000_000_000, 999_100_000_000_000))
        picture.activities[PLACE] = Activity(JOB_ID, *PLACE, "effect", "IN_PROGRESS", ledger, 1, 1)
        picture.job = picture.job._replace(semaphore=picture.job.semaphore + 1)
    if held and chance.often():
        picture.lease = Lease(1, "lease", "IN_PROGRESS", live=True, guid="start")
    elif not held and not chance.rarely():
        picture.lease = None
    return row


def _fence(chance: Chance) -> Fence:
    return Fence(JOB_ID, 1, "other" if chance.rarely() else "lease")


def _call(chance: Chance, picture: Picture) -> CallEffect:
    put_effect(chance, picture)
    if chance.rarely():
        picture.activities.pop(PLACE, None)
        picture.effects = {}
    intent = Intent(KEY, "other" if chance.rarely() else "hash", "{}", EffectRules(1_000).written())
    last = chance.one_of(("", "call-1"))
    return CallEffect(_fence(chance), Chain(JOB_ID), PLACE, intent, LEASE, 990, chance.often(), last)


def _end(chance: Chance, picture: Picture) -> EndEffect:
    put_effect(chance, picture)
    outcome = chance.one_of(tuple(Came))
    result = "1" if outcome is Came.HAPPENED else None
    error = None if outcome is Came.HAPPENED else '{"type":"E","message":"","code":"E"}'
    lease = "call-0" if chance.rarely() else "call-1"
    return EndEffect(_fence(chance), Chain(JOB_ID), PLACE, lease, outcome, result, error, 990)


def _rest(chance: Chance, picture: Picture) -> RestEffect:
    put_effect(chance, picture)
    return RestEffect(_fence(chance), PLACE, "call-1", chance.below(100))


def _doubt(chance: Chance, picture: Picture) -> DoubtEffect:
    put_effect(chance, picture)
    return DoubtEffect(_fence(chance), Chain(JOB_ID), PLACE, "call-1", "cut", 990)


def _probe(chance: Chance, picture: Picture) -> TakeProbe:
    row = put_effect(chance, picture, held=False)
    return TakeProbe(JOB_ID, row.unit, row.rev, 1_000)


def _settle(chance: Chance, picture: Picture) -> SettleEffect:
    row = put_effect(chance, picture, held=False)
    unit = chance.one_of(("", row.unit, "pay#1", "other#1"))
    rev = chance.one_of((None, row.rev, 7))
    return SettleEffect(JOB_ID, chance.one_of(tuple(Says)), "ann", unit, result="1", rev=rev)


KINDS: tuple[Callable[[Chance, Picture], EffectRequest], ...] = (
    _call,
    _end,
    _rest,
    _doubt,
    _probe,
    _settle,
)
