"""Protocol jobs on SQL stores: pictures from rows, and what a plan comes to as rows of statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from tallystick.core.chain import Chain
from tallystick.core.remote.plans import REFUSED, Heard, Hearing, ProtocolPlan
from tallystick.core.remote.requests import CALLBACKS, ProtocolRequest, SubmitCommand
from tallystick.core.remote.rows import OutboxRow
from tallystick.store.api import Fact
from tallystick.store.sql.reads import listed

StaleReport: TypeAlias = tuple[str, int, str, str]

ABSENT: Final = Hearing(Heard.UNKNOWN)
"""The answer to a request about a protocol job that is not there."""


def fact_of(plan: ProtocolPlan, chain: Chain, wall: int) -> Fact | None:
    """Return the fact of a plan, if it tells one."""
    return (
        None if plan.told is None else Fact(chain, plan.told.kind, wall, plan.told.attempt, plan.told.payload)
    )


def stale_report(request: SubmitCommand | ProtocolRequest, heard: Heard) -> StaleReport | None:
    """Return what is kept for people of a report that was refused."""
    if not isinstance(request, CALLBACKS) or heard not in REFUSED:
        return None
    fence = request.fence
    return (fence.job_id, fence.attempt_no, fence.lease_id, f"{type(request).__name__} {fence.step_id}")


class ProtocolReads(ABC):
    """What relays, the sweep and remote workers look for; a request decides again, under the lock."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        return next((OutboxRow._make(row) for row in self.rows("directive", (outbox_id,))), None)

    def due_steps(self, limit: int) -> list[str]:
        """Return protocol jobs whose active step needs the sweep, the longest over first."""
        return [job_id for (job_id,) in self.rows("due_steps", (self.now(), limit))]

    def due_directives(self, via: str, limit: int) -> list[OutboxRow]:
        """Return directives for one endpoint that a relay may take now, the longest due first."""
        return [OutboxRow._make(row) for row in self.rows("due_directives", (via, self.now(), limit))]

    def stray_directives(self, known: Sequence[str], late_ms: int, limit: int) -> list[OutboxRow]:
        """Return directives for other endpoints than these that no relay took since they became due."""
        rows = self.rows("stray_directives", (listed(known), self.now() - late_ms, limit))
        return [OutboxRow._make(row) for row in rows]

    def asked_directives(self, services: Sequence[str], tenant_id: str | None, limit: int) -> list[OutboxRow]:
        """Return directives that a remote worker of these services may be given, the oldest first."""
        rows = self.rows("asked_directives", (listed(services), tenant_id, limit))
        return [OutboxRow._make(row) for row in rows]

    def given_directives(self, worker: str, limit: int) -> list[OutboxRow]:
        """Return what this remote worker was given and has not acknowledged, while there is time for that."""
        return [OutboxRow._make(row) for row in self.rows("given_directives", (worker, self.now(), limit))]
