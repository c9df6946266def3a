"""Doubtful chains: what may be written when a worker's memory of a job may not be what the store has.

An answer to COMMIT was lost, or the server is another one than the one that acknowledged the last fact. Then
the end of the chain is read again, under the attempt's lock, before anything is written behind it. If it is
what the worker remembers, the job goes on. If not, the worker knows steps that are not recorded, or does not
know some that are: nothing that it has worked out since is believed, and it may only give the job back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tallystick.core.chain import Chain, Era
from tallystick.core.effects.requests import CallEffect, DoubtEffect, EndEffect
from tallystick.errors import OutcomeUnknown
from tallystick.store.api import (
    AskRemotes,
    Await,
    Bundle,
    Cycle,
    EndAttempt,
    EndJob,
    Fence,
    RecordEvent,
    RecordStep,
    Spawn,
    TakeAnswer,
)

End: TypeAlias = tuple[int, bytes]

# Requests that the holder of a job makes from what it remembers of its chain: most of them extend it.
_WITH_CHAIN = frozenset({RecordStep, TakeAnswer, Spawn, AskRemotes, CallEffect, EndEffect, DoubtEffect})
_WITH_FACT = frozenset({RecordEvent, Await, Cycle, EndAttempt, EndJob})


def held_chains(batch: Sequence[Bundle]) -> dict[Chain, Fence]:
    """Return the chains behind which this batch writes for holders of jobs; a sweep reads its own."""
    chains: dict[Chain, Fence] = {}
    for bundle in batch:
        for primitive in bundle:
            kind = type(primitive)
            if kind in _WITH_CHAIN:
                chains[primitive.chain] = primitive.fence  # type: ignore[union-attr, assignment]  # as listed
            elif kind in _WITH_FACT:
                chains[primitive.fact.chain] = primitive.fence  # type: ignore[union-attr, assignment]  # as listed
    return chains


def as_known(
    batch: Sequence[Bundle], ends: Mapping[Chain, End], era: Era | None
) -> list[Bundle | OutcomeUnknown]:
    """Return what of a batch may be written, now that the ends of doubtful chains were read.

    A chain that is as remembered is known again. On one that is not, a release goes to where the chain really
    ends, and everything else is refused; its chain stays doubtful.
    """
    wrong = {}
    for chain, end in ends.items():
        if end == (chain.n, chain.head):
            chain.era = era
        else:
            wrong[chain] = Chain(chain.job_id, *end, era)
    return [_allowed(bundle, wrong) for bundle in batch] if wrong else list(batch)


def _allowed(bundle: Bundle, wrong: Mapping[Chain, Chain]) -> Bundle | OutcomeUnknown:
    chain = next((chain for chain in held_chains([bundle]) if chain in wrong), None)
    if chain is None:
        return bundle
    (first, *rest) = bundle
    if type(first) is EndAttempt and first.hold is None and not rest:
        return (first._replace(fact=first.fact._replace(chain=wrong[chain])),)
    return forgotten(chain.job_id)


def forgotten(job_id: str) -> OutcomeUnknown:
    """Return the outcome of a write behind facts of which the store knows nothing, or knows more."""
    return OutcomeUnknown(
        f"job {job_id}: the server was lost, and its history does not end where this worker left it; "
        "it goes on from what is recorded",
        job_id=job_id,
    )
