"""What the routes share: the Tally, its keys and secrets, the time of its store, and waiting clients."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tallystick import crash
from tallystick.app.remote.api_keys import Keyring
from tallystick.core.remote.reports import named_fence
from tallystick.core.remote.requests import StepFence
from tallystick.engine.callback_keys import callback_keys
from tallystick.engine.sweep import expire_steps
from tallystick.errors import BadInput, NotKnown, TallyError
from tallystick.http.flights import Flights
from tallystick.http.news import News
from tallystick.store.api import Protocols
from tallystick.worker.refusals import Reasons

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.api.tally import Tally
    from tallystick.store.api import Outcome, Primitive

SWEEP_SECONDS: Final = 1.0
SWEEP_SECONDS_MAX: Final = 30.0

WRITE_BEFORE: Final = crash.declare("http.write.before", "a request is let in and nothing of it is durable")
WRITE_AFTER: Final = crash.declare("http.write.after", "a request is durable and its client has no answer")

_log = logging.getLogger("tallystick.http")


class Api:
    """One HTTP API on one Tally."""

    def __init__(self, app: Tally, *, in_flight_max: int, sweeps: bool, open_docs: bool) -> None:
        """Open the store and read the secrets; without them nothing is served."""
        self.app = app
        runtime = app.runtime()
        store = runtime.store
        if not isinstance(store, Protocols):
            raise BadInput(f"{store.url} keeps no protocol jobs")
        self.protocols: Protocols = store
        self.keyring = Keyring(store)
        self.open_docs = open_docs
        self._secrets = callback_keys(store.url, runtime.ids)
        self._sweeps = sweeps
        self._ahead_ms = store.now() - runtime.clock.wall_ms()
        self.news = News(store)
        self.flights = Flights(store, runtime.clock, in_flight_max)
        # Directives that a client of this server is about to be given.
        self.offered: set[str] = set()
        self.looking = asyncio.Lock()
        self._rounds: asyncio.Task[None] | None = None

    @property
    def runtime(self) -> Runtime:
        """Return what the Tally has open."""
        return self.app.runtime()

    def now(self) -> int:
        """Return the time by the clock of the store, without asking it."""
        return self.runtime.clock.wall_ms() + self._ahead_ms

    def token(self, tenant_id: str, fence: StepFence, lease_expires_at: int) -> str:
        """Return a token for the reports of an attempt."""
        return self._secrets.token(tenant_id, fence, lease_expires_at)

    def tenant(self, token: str, fence: StepFence) -> str | None:
        """Return the tenant for which a token lets its bearer report on an attempt."""
        return self._secrets.tenant(token, fence, self.now())

    def is_live(self, token: str) -> bool:
        """Tell whether a text can be a token that is not over; what it is for is told by the report."""
        return self._secrets.is_live(token, self.now())

    def check_bearer(self, token: str, body: bytes) -> None:
        """Raise `NotKnown` unless a token is for the attempt that a report names that cannot be read."""
        fence = named_fence(body)
        if fence is None or self.tenant(token, fence) is None:
            raise NotKnown

    async def write(self, *bundle: Primitive) -> Outcome:
        """Make a request durable and return its outcome; a client that goes away undoes nothing."""
        outcome = await self.begin_write(*bundle)
        crash.point(WRITE_AFTER)
        return outcome

    def begin_write(self, *bundle: Primitive) -> asyncio.Future[Outcome]:
        """Hand a request over and return a future of its outcome; requests of one moment share a flush."""
        crash.point(WRITE_BEFORE)
        return self.runtime.lane().call(bundle)

    def begin(self) -> None:
        """Begin what goes on beside requests; said for every request, because a mounted app is not told."""
        if self._rounds is None:
            self._rounds = asyncio.get_running_loop().create_task(self._go_round())
            self.news.begin()

    async def stop(self) -> None:
        """Let waiting clients go, and end what goes on beside requests."""
        self.news.close()
        if self._rounds is not None:
            self._rounds.cancel()

    async def _go_round(self) -> None:
        """Do a round every second; one that fails, whatever the error, is followed by others, less often."""
        told, rest = Reasons(), SWEEP_SECONDS
        while True:
            try:
                self._ahead_ms = await asyncio.to_thread(self._round)
            except Exception as error:  # noqa: BLE001 (without rounds no time of a remote step would ever be over)
                rest = min(2 * rest, SWEEP_SECONDS_MAX)
                if told.is_new(error):
                    # Of an error that is ours to mend the log has all.
                    trace = None if isinstance(error, TallyError) else error
                    about = {"action": "round.failed"}
                    _log.warning("serving: a round failed: %s", error, exc_info=trace, extra=about)
            else:
                told.forget()
                rest = SWEEP_SECONDS
            await asyncio.sleep(rest)

    def _round(self) -> int:
        """Look after remote steps whose time is over, and return how far the store's clock is ahead."""
        runtime = self.runtime
        if self._sweeps and expire_steps(self.protocols, runtime.committer, runtime.ids):
            self.news.ring_soon()
        return runtime.store.now() - runtime.clock.wall_ms()
