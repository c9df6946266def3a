"""What a store shows of effects that have not ended, for those who explain a job or are to answer for it."""

from __future__ import annotations

from typing import Protocol

from tallystick.core.effects.doubts import AwaitedKey, StuckEffect
from tallystick.core.effects.rows import EffectRow


class OpenEffectReads(Protocol):
    """Open effects, what was said of them too late, and when their job was asked to end."""

    def open_keys(self, job_id: str, *, limit: int) -> list[EffectRow]:
        """Return the effects of a job that have not ended, in the order of their intents."""
        ...

    def awaited_keys(self, job_id: str, *, limit: int) -> list[AwaitedKey]:
        """Return the open effects of other jobs whose keys steps of a job wait for."""
        ...

    def stuck_effects(self, tenant_id: str | None, *, until: int, limit: int) -> list[StuckEffect]:
        """Return effects in doubt that no hold shows, by key; None for all tenants.

        Only a person can answer for them and their job is not held for it, or their probe was due by `until`.
        """
        ...

    def forgotten_effects(self, *, until: int, limit: int) -> list[EffectRow]:
        """Return effects that might have been called again before `until`, whose job goes on without them.

        No worker has it, and it is neither held nor due for as long: its function does not come back to them.
        """
        ...

    def late_reports(self, job_id: str) -> list[tuple[int, str]]:
        """Return what calls of effects of a job have said too late: when, and what."""
        ...

    def asked_at(self, job_id: str) -> int | None:
        """Return when a person first asked a job to end; None if no act says so."""
        ...
