"""Chains of jobs while a store writes: places that are taken and given back, one author at a time, and doubt.

A fact takes its place in the chain when it is written; the place is given back when the writing is undone.
In one process the committer and a user's transaction may hold the same chain, and `ChainLocks` lets one of
them write.

A chain is doubtful when a worker's memory of a job may not be what the store has: an answer to COMMIT was
lost, or the server is another one than the one that acknowledged the last fact. Then the end of the chain
is read again, under the attempt's lock, before anything is written behind it. If it is what the worker
remembers, the job goes on. If not, the worker knows steps that are not recorded, or does not know some that
are: nothing that it has worked out since is believed, and it may only give the job back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TypeAlias

from tallystick.core.chain import DOUBTFUL, Chain, Era, Link, step_payload
from tallystick.core.effects.requests import CallEffect, DoubtEffect, EndEffect
from tallystick.core.tuples import make
from tallystick.errors import OutcomeUnknown
from tallystick.store.api import (
    AskRemotes,
    Await,
    Bundle,
    Cycle,
    EndAttempt,
    EndJob,
    Fact,
    Fence,
    RecordEvent,
    RecordStep,
    Spawn,
    StoredEvent,
    TakeAnswer,
)


class Places:
    """Every place that one transaction has taken, in the order of taking."""

    def __init__(self) -> None:
        """Start with none."""
        self._taken: list[tuple[Chain, Link]] = []

    def __len__(self) -> int:
        """Return how many were taken so far: a mark to rewind to."""
        return len(self._taken)

    def fact(self, fact: Fact) -> StoredEvent:
        """Give a fact its place in the chain."""
        chain, kind, at, attempt, payload = fact
        link = chain.extend(kind, at, attempt, payload)
        self._taken.append((chain, link))
        n, before, head = link
        return make(StoredEvent, (chain.job_id, n, kind, at, attempt, payload, before, head))

    def link(self, fact: Fact) -> Link:
        """Give a fact its place in the chain and return the place alone."""
        chain, kind, at, attempt, payload = fact
        link = chain.extend(kind, at, attempt, payload)
        self._taken.append((chain, link))
        return link

    def step(self, step: RecordStep) -> Link:
        """Give an inline step, whose row is its own event, its place in the chain."""
        fence, chain, _dimension, name, occurrence, kind, state, ledger, result, error, notes, at, _ = step
        payload = step_payload(name, occurrence, state, ledger, result, error, notes)
        link = chain.extend(kind, at, fence.attempt, payload)
        self._taken.append((chain, link))
        return link

    def written(self) -> list[tuple[str, int, bytes]]:
        """Return job, place and hash of everything that was written."""
        return [(chain.job_id, link.n, link.event_hash) for chain, link in self._taken]

    def doubt(self) -> None:
        """Keep every place, and note that it is unknown whether what stands there is durable."""
        for chain, _link in self._taken:
            chain.era = DOUBTFUL

    def give_back(self, chain: Chain, link: Link) -> None:
        """Give one place back: what was to stand there was refused, and others were not."""
        chain.rewind(link)
        self._taken.remove((chain, link))

    def rewind(self, start: int = 0) -> None:
        """Give back every place taken since `start`: what was to stand there was rolled back."""
        while len(self._taken) > start:
            chain, link = self._taken.pop()
            chain.rewind(link)


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


class ChainLocks:
    """The jobs that are being written for now: a place is durable, or given back, before the next."""

    def __init__(self) -> None:
        """Start with none."""
        self._writing: set[str] = set()
        self._changed = threading.Condition(threading.Lock())

    @contextmanager
    def writing(self, jobs: AbstractSet[str]) -> Iterator[None]:
        """Wait until no other transaction writes for any of these jobs, then keep others away."""
        with self._changed:
            self._changed.wait_for(lambda: self._writing.isdisjoint(jobs))
            self._writing |= jobs
        try:
            yield
        finally:
            with self._changed:
                self._writing -= jobs
                self._changed.notify_all()
