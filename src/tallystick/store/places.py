"""Places in chains: taken when a fact is written, given back when the writing is undone."""

from __future__ import annotations

from tallystick.core.chain import DOUBTFUL, Chain, Link, step_payload
from tallystick.core.tuples import make
from tallystick.store.api import Fact, RecordStep, StoredEvent


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
