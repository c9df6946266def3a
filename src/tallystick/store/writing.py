"""A transaction of ours that is open: what the verbs that read before they write need of it.

Waiting, waking, spawning, turning and cancelling are the same on every SQL store: a few small statements
each, one after the other, with the job's row in hand. Only the statements differ, and how a row is held.

A verb is a function of its request and of what its statements answer, and of nothing else: it reads no clock
but `wall` and draws no identifiers. So a store may run it again with the answers that it has already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tallystick.core.chain import Chain
from tallystick.core.remote.plans import ProtocolPlan
from tallystick.errors import InvariantBroken, TallyError
from tallystick.store.api import Fact, Fence, StoredEvent


def insist(batch: OpenTransaction, name: str, parameters: Sequence[object]) -> None:
    """Run a statement and refuse the bundle unless it changed exactly one row, as the books say it must.

    The caller holds the job's row and has looked at the fence: what was there a moment ago is there.
    """
    batch.expect(name, parameters, InvariantBroken(f"{name} did not change exactly one row", statement=name))


class OpenTransaction(Protocol):
    """One transaction, its clock, and its statements by name."""

    @property
    def wall(self) -> int:
        """Return the time by the store's clock."""
        ...

    def moment(self, at: int, told_at: int) -> int:
        """Return an instant on the store's clock that a caller named at `told_at` by its own."""
        ...

    def lock(self, job_id: str) -> None:
        """Hold a job's row until the transaction ends; what is read afterwards stays true until then."""
        ...

    def rows(self, name: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        ...

    def changed(self, name: str, parameters: Sequence[object]) -> int:
        """Run a statement and return how many rows it changed."""
        ...

    def run(self, name: str, parameters: Sequence[object]) -> None:
        """Run a statement whose guard may well find nothing to change; nothing depends on it here."""
        ...

    def expect(self, name: str, parameters: Sequence[object], otherwise: TallyError) -> None:
        """Run a statement and refuse the bundle with this error unless exactly one row changes.

        A store may look at that later, but always before the bundle is accepted.
        """
        ...

    def many(self, name: str, rows: Sequence[Sequence[Any]], fence: Fence) -> None:
        """Write rows and insist that each changes exactly one, or the bundle is refused as a stale report."""
        ...

    def placed(self, fact: Fact) -> StoredEvent:
        """Give a fact its place in the chain."""
        ...

    def write_plan(self, plan: ProtocolPlan, chain: Chain) -> None:
        """Write what was decided of a protocol job; its fact goes on from the end of this chain."""
        ...
