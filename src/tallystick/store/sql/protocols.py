"""Protocol jobs on SQL stores: pictures from rows, and what a plan comes to as rows of statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from tallystick.core.chain import Chain
from tallystick.core.lifecycles import OUTBOX, OutboxState
from tallystick.core.remote.plans import Heard, Hearing, ProtocolPlan
from tallystick.core.remote.requests import DueStep
from tallystick.core.remote.rows import OutboxRow, step_id_of
from tallystick.core.verbs.protocol import drafts
from tallystick.store.api import Fact
from tallystick.store.sql.reads import listed

ABSENT: Final = Hearing(Heard.UNKNOWN)
"""The answer to a request about a protocol job that is not there."""


WITHDRAWN: Final = (OUTBOX.follow(OutboxState.PENDING, "withdraw").target.value, drafts.WITHDRAWN)
"""What a directive comes to whose job has ended, and why."""


def fact_of(plan: ProtocolPlan, chain: Chain, wall: int) -> Fact | None:
    """Return the fact of a plan, if it tells one."""
    return (
        None if plan.told is None else Fact(chain, plan.told.kind, wall, plan.told.attempt, plan.told.payload)
    )


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

    def due_steps(self, limit: int) -> list[DueStep]:
        """Return remote steps that need the sweep, the longest over first."""
        rows = self.rows("due_steps", (self.now(), limit))
        return [
            DueStep(job_id, "" if dimension is None else step_id_of((dimension, name, occurrence)))
            for job_id, dimension, name, occurrence in rows
        ]

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
