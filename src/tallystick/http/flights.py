"""How many jobs of a tenant are in flight: counted about once per second, and by the jobs made since."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tallystick.core.remote.requests import SubmitCommand
from tallystick.errors import TooManyInFlight
from tallystick.store.api import Existing, Outcome

if TYPE_CHECKING:
    from tallystick.clock import Clock
    from tallystick.store.api import Store

_GOOD_FOR_SECONDS: Final = 1.0
# So many tenants are remembered; of others the count is made anew.
_TENANTS_MAX: Final = 1_000


class _TenantFlights:
    """What is known of one tenant: its jobs in flight, and the requests that may be about to add one."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.count = 0
        self.good_until = 0.0
        # Requests that have a place and are not answered yet.
        self.entering = 0
        # Jobs made here, ever: what was made while the store counted may be missing in its count.
        self.made = 0
        self._answered = asyncio.Event()

    def has_room(self, now: float, most: int) -> bool:
        """Tell whether one more may come, as far as is known."""
        return now < self.good_until and self.count + self.entering < most

    def leave(self, *, made: bool) -> None:
        """Give a place back, or keep it for the job that was made."""
        self.entering -= 1
        self.made += made
        self.count += made
        self._answered.set()

    async def one_answered(self) -> None:
        """Wait until a request has left that has a place; only the holder of the turn waits."""
        if self.entering:
            self._answered.clear()
            await self._answered.wait()


class Flights:
    """A limit for each tenant. Servers side by side may together let in a few more."""

    def __init__(self, store: Store, clock: Clock, most: int) -> None:
        """Begin without a count."""
        self._store = store
        self._clock = clock
        self._most = most
        self._tenants: dict[str, _TenantFlights] = {}

    async def submit(self, request: SubmitCommand, write: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Write a new job of a tenant that may have one more; a job that is there is answered in any case.

        The place is taken before the write begins, so that requests at the same time do not all find it free.
        """
        tenant = self._tenant(request.job.tenant_id)
        if not await self._takes_place(tenant, request):
            return await write()
        made = False
        try:
            outcome = await write()
            made = not isinstance(outcome, Existing)
        except BaseException:
            # Whether it was made the store knows.
            tenant.good_until = 0.0
            raise
        finally:
            tenant.leave(made=made)
        return outcome

    async def _takes_place(self, tenant: _TenantFlights, request: SubmitCommand) -> bool:
        """Take a place, or tell that none is needed because the job is there; refuse if all are taken."""
        monotonic = self._clock.monotonic
        if not tenant.has_room(monotonic(), self._most):
            async with tenant.turn:
                while not tenant.has_room(monotonic(), self._most):
                    count = await self._counted(tenant, request.job.tenant_id)
                    if count >= self._most:
                        await self._check_known(request)
                        return False
                    if not tenant.has_room(monotonic(), self._most):
                        # It depends on what becomes of the requests that have the last places.
                        await tenant.one_answered()
        tenant.entering += 1
        return True

    async def _counted(self, tenant: _TenantFlights, tenant_id: str) -> int:
        """Ask the store, and return what it has; jobs made meanwhile are counted beside that."""
        made = tenant.made
        count = await asyncio.to_thread(self._store.in_flight, tenant_id, self._most)
        tenant.count = count + tenant.made - made
        tenant.good_until = self._clock.monotonic() + _GOOD_FOR_SECONDS
        return count

    async def _check_known(self, request: SubmitCommand) -> None:
        tenant_id, scope, value, *_content = request.reservation
        if not await asyncio.to_thread(self._store.is_reserved, tenant_id, scope, value):
            raise TooManyInFlight(
                f"{tenant_id} has {self._most} jobs in flight, as many as it may have; try again later",
                limit=self._most,
            )

    def _tenant(self, tenant_id: str) -> _TenantFlights:
        if tenant_id not in self._tenants and len(self._tenants) >= _TENANTS_MAX:
            now = self._clock.monotonic()
            self._tenants = {
                name: each
                for name, each in self._tenants.items()
                if each.entering or each.turn.locked() or now < each.good_until
            }
        return self._tenants.setdefault(tenant_id, _TenantFlights())
