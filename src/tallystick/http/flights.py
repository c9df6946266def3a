"""How many jobs of a tenant are in flight: counted about once per second, and by the jobs made since."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tallystick.core.remote.requests import SubmitCommand
from tallystick.errors import TooManyInFlight

if TYPE_CHECKING:
    from tallystick.clock import Clock
    from tallystick.store.api import Store

_GOOD_FOR_SECONDS: Final = 1.0


class Flights:
    """A limit for each tenant. Servers side by side may together let in a few more."""

    def __init__(self, store: Store, clock: Clock, most: int) -> None:
        """Begin without a count."""
        self._store = store
        self._clock = clock
        self._most = most
        self._counts: dict[str, tuple[float, int]] = {}

    async def check(self, request: SubmitCommand) -> None:
        """Refuse a new job of a tenant that has as many as it may have; a job that is there is answered."""
        tenant_id = request.job.tenant_id
        at, count = self._counts.get(tenant_id, (0.0, self._most))
        now = self._clock.monotonic()
        if count >= self._most or now - at > _GOOD_FOR_SECONDS:
            count = await asyncio.to_thread(self._store.in_flight, tenant_id, self._most)
            self._counts[tenant_id] = (now, count)
        if count < self._most:
            return
        tenant, scope, value, *_content = request.reservation
        if not await asyncio.to_thread(self._store.is_reserved, tenant, scope, value):
            raise TooManyInFlight(
                f"{tenant_id} has {self._most} jobs in flight, as many as it may have; try again later",
                limit=self._most,
            )

    def made(self, tenant_id: str) -> None:
        """Count a job that was made."""
        at, count = self._counts.get(tenant_id, (0.0, 0))
        self._counts[tenant_id] = (at, count + 1)
