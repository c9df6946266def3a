"""A stage on asyncio: coroutines compute and one coroutine commits, all in the caller's event loop.

Syncing the journal happens in a thread, so the loop never waits for the disk. The flow is touched from the
loop only and needs no lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

from tallystick.errors import SequenceFatal, StageFault
from tallystick.stage.flow import Finished, Ticket
from tallystick.stage.lanes.compute import attempt_async, raised
from tallystick.stage.lanes.heartbeat import beats_with
from tallystick.stage.lanes.run import LanesRun
from tallystick.stage.outcome import FAIL, CommitBatch, Result
from tallystick.stage.settings import BATCH_BYTES_MAX, BATCH_ITEMS_MAX

TICK_SECONDS = 0.1
YIELD_ITEMS = 64
JOIN_SECONDS = 1.0


class AsyncLanes(LanesRun):
    """One run of a stage in an event loop."""

    def _prepare(self) -> None:
        self._idle: list[asyncio.Future[None]] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._space = asyncio.Event()
        self._turn = asyncio.Event()
        self._computing: dict[str, asyncio.Future[Any]] = {}
        self._crew: set[asyncio.Future[Any]] = set()

    async def run(self, items: AsyncIterator[Any]) -> None:
        """Compute and commit everything, or stop in order when asked to."""
        loop = asyncio.get_running_loop()
        self._stop.on_request(lambda: loop.call_soon_threadsafe(self._turn.set))
        self._spawn(self._feed(items))
        for number in range(self._settings.workers):
            self._spawn(self._labour(f"worker-{number}"))
        try:
            while (found := await self._next_run()) is not None:
                await self._commit(found)
            if self._input_error is not None:
                raise self._input_error
        except SequenceFatal as error:
            raise self._flow.fault(error.message, error) from error
        finally:
            await self._dismiss()

    # The commit lane.

    async def _next_run(self) -> list[Finished] | None:
        flow = self._flow
        while True:
            if self._broken is not None:
                raise self._broken
            self._look_after(self._clock.boot_ms())
            count = flow.ready(BATCH_ITEMS_MAX)
            if count:
                return flow.peek(count, BATCH_BYTES_MAX)
            if flow.is_done or (flow.stopping and flow.is_settled):
                return None
            self._turn.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._turn.wait(), TICK_SECONDS)
            self._progress.show(flow.next_commit)

    async def _commit(self, found: list[Finished]) -> None:
        flow = self._flow
        batch = await self._durable(found)
        await self.deliver(batch)
        flow.commit(len(found))
        self._space.set()
        self._wake_workers(len(self._idle))
        self._progress.show(flow.next_commit)
        failures_max = self._settings.failures_max
        if failures_max is not None and flow.finished[FAIL] > failures_max:
            self._stop.request("too many failures")

    async def _durable(self, found: list[Finished]) -> CommitBatch[Any]:
        if not self._as_json:
            return self._commit_lane.make_durable(found, self._flow.started)
        writing = asyncio.get_running_loop().run_in_executor(
            None, self._commit_lane.make_durable, found, self._flow.started
        )
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The line is on its way to the disk: the journal must not be touched before it has arrived.
            await asyncio.wait([writing])
            raise

    async def deliver(self, batch: CommitBatch[Any]) -> None:
        """Hand a durable batch to the commit function."""
        if self._settings.commit is not None:
            answer = self._settings.commit(batch)
            if inspect.isawaitable(answer):
                await answer
        self._commit_lane.note_delivered(batch)

    def _look_after(self, now_ms: int) -> None:
        flow = self._flow
        if self._settings.has_timeout:
            for owner in flow.reclaim(now_ms):
                computing = self._computing.pop(owner, None)
                if computing is not None:
                    computing.cancel()
                self._wake_when_due()
        if self._stop.reason and not flow.stopping:
            flow.stop(now_ms)
            self._force_at_ms = now_ms + self._settings.grace_ms
            self._space.set()
            self._wake_workers(len(self._idle))
        if self._force_at_ms is not None and now_ms >= self._force_at_ms:
            flow.force(now_ms)

    # The workers.

    async def _labour(self, owner: str) -> None:
        held: list[Ticket] = []

        def renew() -> bool:
            return self._flow.heartbeat(held[0], self._clock.boot_ms())

        beats_with(renew)
        while (ticket := await self._next_ticket(owner)) is not None:
            held[:] = [ticket]
            result = await self._compute(ticket)
            if result is None:
                continue
            flow = self._flow
            retried = flow.retried
            flow.report(ticket, result, self._clock.boot_ms())
            if flow.retried != retried:
                self._wake_when_due()
            if not self._turn.is_set() and (flow.ready(1) or flow.stopping):
                self._turn.set()

    async def _compute(self, ticket: Ticket) -> Result | None:
        """Return what came of an attempt; None means that its lease was lost and it was cancelled."""
        attempt = attempt_async(self._settings.function, ticket.item, as_json=self._as_json)
        if not self._settings.has_timeout:
            result: Result = await attempt
            return result
        # With a timeout the attempt runs on its own, so that it can be cancelled without its worker.
        running = self._computing[ticket.owner] = asyncio.ensure_future(attempt)
        try:
            result = await running
        except asyncio.CancelledError as error:
            if self._computing.get(ticket.owner) is not running:
                return None
            worker = asyncio.current_task()
            if worker is None or worker.cancelling():
                raise  # not the attempt was cancelled but the worker
            result = raised(error)  # the function cancelled its own task
        self._computing.pop(ticket.owner, None)
        return result

    async def _next_ticket(self, owner: str) -> Ticket | None:
        flow = self._flow
        while True:
            now_ms = self._clock.boot_ms()
            found = None if self._stop.reason else flow.take(owner, now_ms)
            if self._alarm is None:
                self._wake_when_due()
            if found is not None:
                return found
            if flow.is_done or self._stop.reason:
                self._turn.set()
                return None
            # Nothing is awaited between `take` and here, so no wake-up can get lost.
            waiting = asyncio.get_running_loop().create_future()
            self._idle.append(waiting)
            await waiting

    def _wake_when_due(self) -> None:
        """Let workers look when the next backoff is over; needs no help from a commit that goes on."""
        due_ms = self._flow.next_due_ms()
        if due_ms is not None:
            if self._alarm is not None:
                self._alarm.cancel()
            # One millisecond more, because the loop's clock and ours are cut at different places.
            wait_ms = 1 + max(1, due_ms - self._clock.boot_ms())
            self._alarm = asyncio.get_running_loop().call_later(wait_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake_workers(len(self._idle))

    def _wake_workers(self, count: int) -> None:
        while self._idle and count:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                count -= 1

    # The input.

    async def _feed(self, items: AsyncIterator[Any]) -> None:
        flow = self._flow
        try:
            async for item in items:
                admission = self._intake.describe(item)
                while not flow.stopping and not flow.admit(*admission, self._clock.boot_ms()):
                    self._space.clear()
                    await self._space.wait()
                if flow.stopping:
                    return
                self._wake_workers(1)
        except Exception as error:  # noqa: BLE001 (raised again by `run`, when all is committed)
            self._input_error = error
        flow.end_input()
        self._turn.set()

    # The end.

    def _spawn(self, coroutine: Any) -> None:  # noqa: ANN401 (whatever ensure_future takes)
        running = asyncio.ensure_future(coroutine)
        self._crew.add(running)
        running.add_done_callback(self._left)

    def _left(self, running: asyncio.Future[Any]) -> None:
        self._crew.discard(running)
        trouble = None if running.cancelled() else running.exception()
        if running.cancelled() and not self._over:
            # The item that this task had would never come to its end.
            trouble = StageFault(
                "a task of the stage was cancelled from outside; cancel the task that awaits run_async"
            )
        if trouble is not None:
            self._broken = self._broken or trouble
            self._turn.set()

    async def _dismiss(self) -> None:
        self._over = True
        flow = self._flow
        if not flow.is_done and not flow.is_latched:
            now_ms = self._clock.boot_ms()
            flow.stop(now_ms)
            flow.force(now_ms)
        if self._alarm is not None:
            self._alarm.cancel()
        everybody = [*self._crew, *self._computing.values()]
        for running in everybody:
            running.cancel()
        # A coroutine that does not let itself be cancelled is left behind and not waited for.
        if everybody:
            await asyncio.wait(everybody, timeout=JOIN_SECONDS)


async def as_async(items: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    """Return the items one by one; a plain iterable is read in the event loop, which gets its turn."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for number, item in enumerate(items):
            yield item
            if number % YIELD_ITEMS == 0:
                await asyncio.sleep(0)
