"""Effects on SQL stores, as probes and people look for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from tallystick.core.effects.doubts import AwaitedKey, StuckEffect
from tallystick.core.effects.requests import DueProbe
from tallystick.core.effects.rows import EffectRow
from tallystick.store.sql.reads import listed

LOOKED_MAX: Final = 10_000
"""How many effects in doubt one look for stuck ones goes past, at most."""


class EffectReads(ABC):
    """What is read of effects; a request decides again, under the lock."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    @abstractmethod
    def now(self) -> int:
        """Return the time by the store's clock."""

    def due_probes(self, effects: Sequence[str], limit: int) -> list[DueProbe]:
        """Return effects of these names whose probes are to be asked now, the longest waiting first."""
        return [DueProbe._make(row) for row in self.rows("due_probes", (listed(effects), self.now(), limit))]

    def open_effects(self, tenant_id: str, key: str) -> list[EffectRow]:
        """Return the effects of any job that have a key and an unknown outcome."""
        return [EffectRow._make(row) for row in self.rows("open_effects", (tenant_id, key))]

    def effects(self, job_id: str) -> list[EffectRow]:
        """Return the effects of a job, in the order of their intents."""
        return [EffectRow._make(row) for row in self.rows("effects_of", (job_id,))]


class DoubtReads(ABC):
    """Open effects, what was said of them too late, and when their job was asked to end."""

    @abstractmethod
    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    def open_keys(self, job_id: str, *, limit: int) -> list[EffectRow]:
        """Return the effects of a job that have not ended, in the order of their intents."""
        return [EffectRow._make(row) for row in self.rows("open_keys", (job_id, limit))]

    def awaited_keys(self, job_id: str, *, limit: int) -> list[AwaitedKey]:
        """Return the open effects of other jobs whose keys steps of a job wait for."""
        rows = self.rows("awaited_keys", (job_id, limit))
        return [AwaitedKey(unit, EffectRow._make(row), state) for unit, *row, state in rows]

    def stuck_effects(self, tenant_id: str | None, *, until: int, limit: int) -> list[StuckEffect]:
        """Return effects in doubt that no hold shows; None for all tenants."""
        rows = self.rows("stuck_effects", (tenant_id, until, LOOKED_MAX, limit))
        return [StuckEffect(EffectRow._make(row), state) for *row, state in rows]

    def forgotten_effects(self, *, until: int, limit: int) -> list[EffectRow]:
        """Return effects at rest to which the functions of their jobs have not come back."""
        return [EffectRow._make(row) for row in self.rows("forgotten_effects", (until, LOOKED_MAX, limit))]

    def late_reports(self, job_id: str) -> list[tuple[int, str]]:
        """Return what calls of effects of a job have said too late: when, and what."""
        return [(at, report) for at, report in self.rows("late_reports", (job_id,))]

    def asked_at(self, job_id: str) -> int | None:
        """Return when a person first asked a job to end, if an act says so."""
        return next((int(at) for (at,) in self.rows("asked_at", (job_id,))), None)
