"""The relay: publishes directives on a loop of its own, every endpoint at its own pace.

It publishes only what it has a counted try for, and begins only while the right to that try lasts. What
became of a try is noted by the committer; notes of one moment share a flush. A relay that dies leaves its
tries to the next: the directive goes out again under the same identifier.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal, NamedTuple

from tallystick import crash
from tallystick.clock import Clock
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, clip_text
from tallystick.core.remote.plans import Heard, Hearing
from tallystick.core.remote.policy import next_try_ms
from tallystick.core.remote.requests import MarkSent, NotPublished, StepFence
from tallystick.core.remote.rows import OutboxRow
from tallystick.engine.committer import Committer
from tallystick.engine.observe import Observers, PublishTried
from tallystick.errors import PublishFailed, StoreError, TallyError
from tallystick.remote.publishers.endpoint import PUBLISH_SECONDS, SILENT, Endpoint, Outgoing, Publisher
from tallystick.store.api import Outcome
from tallystick.worker.refusals import Reasons
from tallystick.worker.relays.leaving import Leaving
from tallystick.worker.relays.reports import Reports

WINDOW_MAX: Final = 512
# A window grows while what it holds goes out at once, and is the smallest again when something has waited.
_AT_ONCE, _TOO_LONG = 0.5, 5.0
_RETRY_SECONDS: Final = 0.25

PUBLISH_BEFORE: Final = crash.declare("relay.publish.before", "a try is counted and nothing has been sent")
PUBLISH_AFTER: Final = crash.declare("relay.publish.after", "the directive is out and that is not noted")
SENT_AFTER: Final = crash.declare("relay.sent.after", "the directive is out, and that is durable")

_log = logging.getLogger("tallystick.worker")


class _Try(NamedTuple):
    """A directive whose try is counted as ours; `until` is when the right to it ends, by our own clock."""

    row: OutboxRow
    taken_at: float
    until: float


class Relay:
    """Publishes for one worker."""

    def __init__(
        self,
        committer: Committer,
        clock: Clock,
        endpoints: Mapping[str, Endpoint],
        leaving: Leaving,
        reports: Reports,
        *,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare a line for each endpoint, by its address; nothing is connected before it is needed."""
        self.clock = clock
        self.committer = committer
        self.leaving = leaving
        self.reports = reports
        self.on_room = on_room
        self.lines = {address: EndpointLine(self, endpoint) for address, endpoint in endpoints.items()}
        self.tasks: set[asyncio.Task[None]] = set()
        self._grace = 0.0
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="tally-relay", daemon=True
        )

    @property
    def eager(self) -> bool:
        """Tell whether what this process makes may count its first try here: no line is behind."""
        return all(line.room > 0 for line in self.lines.values())

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._started.wait()

    def stop(self, seconds: float) -> None:
        """End when what is on its way has arrived, or after so many seconds; what waits is left to others."""
        loop, stopped = self._loop, self._stopped
        if loop is None or stopped is None:
            return
        self._grace = seconds
        loop.call_soon_threadsafe(stopped.set)
        self._thread.join()

    def offer(self, outcome: Outcome | BaseException) -> None:
        """Publish the directive that a request has made or taken, if its try is ours; from any thread.

        If no try is counted yet, the role looks for it at once.
        """
        row = outcome.directive if isinstance(outcome, Hearing) else None
        line = None if row is None or row.is_pulled else self.lines.get(row.via)
        loop = self._loop
        if row is None or line is None or loop is None:
            return
        if not row.tries:
            self.on_room()
            return
        now = self.clock.monotonic()
        line.count(1)
        try:
            loop.call_soon_threadsafe(line.add, _Try(row, now, now + next_try_ms(row.tries) / 1000))
        except RuntimeError:
            line.count(-1)  # the loop is closed: this worker has stopped, and the next try is another's

    async def _run(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        listening = [
            self._loop.create_task(line.listen())
            for address, line in self.lines.items()
            if line.has_replies_at(address)
        ]
        self._started.set()
        await self._stopped.wait()
        await _end(listening)
        for line in self.lines.values():
            line.leave()
        if self.tasks:
            _done, late = await asyncio.wait(self.tasks, timeout=self._grace)
            await _end(late)
        for line in self.lines.values():
            await line.close()
        self._loop = None


def tell_failed(observers: Observers, service: str, noted: Outcome, seconds: float = 0.0) -> None:
    """Tell that a try has failed, if that is noted: it is repeated, or the directive is given up."""
    if PublishTried in observers.wanted and isinstance(noted, Hearing):
        became: Literal["failed", "given up"] = "failed" if noted.heard is Heard.LATER else "given up"
        observers.tell(PublishTried(service, became, seconds))


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended: a library may take a cancellation for a timeout of its own."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _done, left = await asyncio.wait(left, timeout=_RETRY_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


class EndpointLine:
    """The directives for one endpoint: some on their way, the others wait; no other line waits for them."""

    def __init__(self, relay: Relay, endpoint: Endpoint) -> None:
        """Begin empty."""
        self._relay = relay
        self._endpoint = endpoint
        self._publisher: Publisher | None = None
        self._waiting: deque[_Try] = deque()
        self._window = endpoint.in_flight
        self._lock = threading.Lock()
        self._here = 0
        self._on_their_way = 0
        self._told = Reasons()
        # Whether more was due than there was room for, and how many tries have failed here.
        self.hungry = False
        self.failures = 0

    def has_replies_at(self, address: str) -> bool:
        """Tell whether reports come back on this way; an older name of an endpoint has none of its own."""
        return bool(self._endpoint.replies) and self._endpoint.address == address

    @property
    def room(self) -> int:
        """Return for how many more there is room."""
        return max(0, self._window - self._here)

    def count(self, more: int) -> None:
        """Count what comes or goes; from any thread."""
        with self._lock:
            self._here += more

    def add(self, one: _Try) -> None:
        """Put a try in line."""
        self._waiting.append(one)
        self._go_on()

    def leave(self) -> None:
        """Begin nothing more."""
        self.count(-len(self._waiting))
        self._waiting.clear()

    async def listen(self) -> None:
        """Take reports to the books, until cancelled."""
        await self._connected().listen(lambda report: self._relay.reports.answer(report, self._relay))

    def _connected(self) -> Publisher:
        if self._publisher is None:
            self._publisher = self._endpoint.connect()
        return self._publisher

    async def close(self) -> None:
        """Give the connection back."""
        if self._publisher is not None:
            await self._publisher.close()

    def _go_on(self) -> None:
        while self._waiting and self._on_their_way < self._endpoint.in_flight:
            task = asyncio.get_running_loop().create_task(self._take(self._waiting.popleft()))
            self._on_their_way += 1
            self._relay.tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._relay.tasks.discard(task)
        self._on_their_way -= 1
        self.count(-1)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(error)
        self._go_on()
        if self.hungry and self.room >= self._window // 2:
            self.hungry = False
            self._relay.on_room()

    async def _take(self, one: _Try) -> None:
        """Publish a directive and note what became of it."""
        row, now = one.row, self._relay.clock.monotonic()
        if now >= one.until:
            return  # others may have it now; the try is counted, and nothing was sent
        fence = StepFence(row.job_id, row.step_id, row.attempt_no, row.lease_id)
        crash.point(PUBLISH_BEFORE)
        try:
            await self._publish(row, min(PUBLISH_SECONDS, one.until - now))
        except PublishFailed as failed:
            took = self._relay.clock.monotonic() - now
            self._tell(failed)
            self.failures += 1
            self._window = self._endpoint.in_flight
            reason = clip_text(self._endpoint.clean(failed.message), ERROR_TEXT_BYTES_MAX)
            noted = await self._note(NotPublished(fence, row.tries, reason, failed.final, failed.told), one)
            tell_failed(self._relay.committer.observers, row.service, noted, took)
            return
        took = self._relay.clock.monotonic() - now
        crash.point(PUBLISH_AFTER)
        noted = await self._note(MarkSent(fence), one)
        crash.point(SENT_AFTER)
        if noted is not None and PublishTried in (observers := self._relay.committer.observers).wanted:
            observers.tell(PublishTried(row.service, "sent", took))
        self._adapt(self._relay.clock.monotonic() - one.taken_at)
        self._told.forget()

    async def _publish(self, row: OutboxRow, seconds: float) -> None:
        body = self._relay.leaving.body(row, self._endpoint.replies)
        try:
            async with asyncio.timeout(seconds):
                await self._connected().publish(Outgoing(row.outbox_id, row.topic, body))
        except TimeoutError as error:
            told = f"{self._endpoint.address} did not answer within {seconds:g} seconds"
            raise PublishFailed(told, told=SILENT) from error
        except PublishFailed:
            raise
        except Exception as error:
            # Whatever a library raises is a try that failed: the budget of tries is its way out.
            raise PublishFailed(f"{self._endpoint.address}: {type(error).__name__}: {error}") from error

    async def _note(self, request: MarkSent | NotPublished, one: _Try) -> Outcome:
        """Make durable what became of a try; while the store is away, until the right to it ends.

        Return what was heard, or None if it could not be noted.
        """
        relay = self._relay
        lane = relay.committer.lane(asyncio.get_running_loop())
        while True:
            try:
                return await lane.call((request,))
            except StoreError as error:
                self._tell(error)
                if relay.clock.monotonic() >= one.until:
                    return None
                await asyncio.sleep(_RETRY_SECONDS)
            except TallyError as error:
                self._tell(error)
                return None

    def _adapt(self, took: float) -> None:
        """Let more wait here while everything goes out at once; what is slow or fails waits in the outbox."""
        if took > _TOO_LONG:
            self._window = self._endpoint.in_flight
        elif took < _AT_ONCE:
            self._window = min(self._window + 1, max(WINDOW_MAX, self._endpoint.in_flight))

    def _tell(self, error: BaseException) -> None:
        """Log each reason once, until a directive arrives again."""
        if self._told.is_new(error):
            about = {"action": "publish.failed", "endpoint": self._endpoint.address}
            said = self._endpoint.clean(str(error))
            _log.warning("relay: %s: %s", self._endpoint.address, said, extra=about)
