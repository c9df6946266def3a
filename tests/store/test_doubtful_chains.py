"""Every request that the holder of a job writes from memory is looked at before it is written in doubt."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from tallystick.core.chain import DOUBTFUL, Chain, Era
from tallystick.core.effects.requests import EffectRequest, RestEffect
from tallystick.core.remote.requests import ProtocolRequest
from tallystick.errors import OutcomeUnknown
from tallystick.store.api import Fence, Primitive, ReclaimAttempt, RunTx, SetValue
from tallystick.store.chains import as_known, held_chains

# Requests with a fence that need no look, each with the reason.
NOT_FROM_MEMORY = {
    ReclaimAttempt: "a sweep remembers nothing: it reads the end of the chain under the lock",
    RunTx: "the loan compares the end of the chain itself, when its step is written",
    RestEffect: "it is written behind the fact of the try that failed, in one bundle",
    SetValue: "a value is no fact, and the step that set it is refused and sets it again",
}


def kinds(union: object = Primitive) -> set[type]:
    """Return the classes of all requests to a store."""
    parts = get_args(union)
    return {union} if not parts else set().union(*(kinds(part) for part in parts))  # type: ignore[arg-type]  # a class has no parts


def fenced() -> dict[type, set[str]]:
    """Return the requests that act for the holder of a job, with the names of their fields."""
    hints = {kind: get_type_hints(kind) for kind in kinds()}
    return {kind: set(fields) for kind, fields in hints.items() if fields.get("fence") is Fence}


FENCED = fenced()


def made(kind: type, chain: Chain) -> object:
    """Return a request of a kind that knows nothing but its fence and its chain."""
    given = dict.fromkeys(kind._fields) | {"fence": Fence("j", 1, "lease")}  # type: ignore[attr-defined]  # a named tuple
    if "chain" in FENCED[kind]:
        return kind(**given | {"chain": chain})
    return kind(**given | {"fact": Told(chain)})


class Told:
    """A fact of which only the chain matters."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    def _replace(self, chain: Chain) -> Told:
        return Told(chain)


def test_the_union_of_requests_has_been_taken_apart():
    assert kinds() >= {*get_args(EffectRequest), *get_args(ProtocolRequest)}
    assert len(FENCED) >= 14, sorted(kind.__name__ for kind in FENCED)


@pytest.mark.parametrize("kind", sorted(FENCED, key=str))
def test_what_acts_for_a_holder_says_behind_which_history(kind):
    if kind in NOT_FROM_MEMORY:
        assert not FENCED[kind] & {"chain", "fact"}, "it has a chain: then it is looked at"
        return
    assert FENCED[kind] & {"chain", "fact"}, f"a {kind.__name__} cannot be compared with what is recorded"
    chain = Chain("j", 3, b"remembered", DOUBTFUL)
    request = made(kind, chain)
    assert held_chains([(request,)]) == {chain: Fence("j", 1, "lease")}
    (allowed,) = as_known([(request,)], {chain: (2, b"recorded")}, Era())
    if kind.__name__ == "EndAttempt":
        assert allowed[0].fact.chain.n == 2, "a release goes to where the chain really ends"
    else:
        assert isinstance(allowed, OutcomeUnknown)
