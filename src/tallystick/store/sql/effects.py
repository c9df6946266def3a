"""Effects on SQL stores, as probes and people look for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tallystick.core.effects.requests import DueProbe
from tallystick.core.effects.rows import EffectRow
from tallystick.store.sql.reads import listed


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
