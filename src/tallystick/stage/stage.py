"""A stage: many items, computed in any order, committed in order, resumed where a crash left off.

    stage = Stage(digest, journal="digests.journal")
    summary = stage.run(paths)

Promised: every item has exactly one outcome; outcomes are committed in the order of the items; an item
whose outcome is in the journal is never computed again. Not promised: that an item is computed only once
before that, since a crash, a timeout or a retry may compute it again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

from tallystick.clock import Clock, SystemClock
from tallystick.core.durations import duration_ms
from tallystick.core.retry import RetryPolicy
from tallystick.defaults import STAGE_GRACE
from tallystick.errors import BadInput, WrongColour
from tallystick.stage.diagnostics import Diagnostics
from tallystick.stage.flow import Flow
from tallystick.stage.intake import Intake
from tallystick.stage.journal.journal import Journal
from tallystick.stage.lanes.commit import CommitLane
from tallystick.stage.lanes.coroutines import AsyncLanes, as_async
from tallystick.stage.lanes.stop import Stop, stopping_on_interrupt
from tallystick.stage.lanes.threads import ThreadLanes
from tallystick.stage.outcome import CommitBatch
from tallystick.stage.progress import ProgressDisplay, progress_on
from tallystick.stage.settings import BUFFER_BYTES, Lane, Settings, lane_of, name_of, policy_of, workers_of
from tallystick.stage.summary import Summary
from tallystick.stage.windows import WindowLimits, WindowPlan

T = TypeVar("T")
R = TypeVar("R")


class Stage(Generic[T, R]):
    """A function over many items, with two lanes: compute in any order, commit in order.

    compute     a plain function (threads, or processes if you say so) or an async one (asyncio)
    commit      called with each CommitBatch, in order, after its outcomes are durable
    journal     a file; with it the stage resumes, and results are kept in it as JSON
    workers     how many items are computed at once
    retry       a RetryPolicy, or a number of attempts for any error; by default OSError three times
    timeout     how long an attempt may go without a sign of life (`tick()`)
    windows     how far ahead of the commit the stage may work, by count, cost and bytes
    buffer_bytes how many bytes of results may wait for their turn
    grace       how long a stop waits for what is in flight
    failures_max stop when more items than this have failed for good
    key         what identifies an item in the journal, if its JSON form does not
    progress    True or False; by default only on a terminal
    """

    def __init__(
        self,
        compute: Callable[[T], Awaitable[R] | R],
        *,
        commit: Callable[[CommitBatch[R]], object] | None = None,
        journal: str | os.PathLike[str] | None = None,
        lane: str | None = None,
        workers: int | None = None,
        retry: RetryPolicy | int | None = None,
        timeout: str | float | timedelta | None = None,
        windows: WindowLimits | None = None,
        buffer_bytes: float = BUFFER_BYTES,
        cost_of: Callable[[T], float] | None = None,
        size_of: Callable[[T], int] | None = None,
        key: Callable[[T], object] | None = None,
        grace: str | float | timedelta = STAGE_GRACE,
        failures_max: int | None = None,
        progress: bool | None = None,
        total: int | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        chosen = lane_of(compute, lane)
        self.settings = Settings(
            function=compute,
            commit=commit,
            name=name or name_of(compute),
            lane=chosen,
            workers=workers_of(workers, chosen),
            journal=None if journal is None else Path(journal),
            policy=policy_of(retry, timeout),
            windows=windows or WindowLimits(),
            buffer_bytes=buffer_bytes,
            grace_ms=duration_ms(grace),
            failures_max=failures_max,
            key=key,
            cost_of=cost_of,
            size_of=size_of,
            progress=progress,
            total=total,
            has_timeout=timeout is not None,
            clock=clock or SystemClock(),
        )
        self.summary = Summary(self.settings.name)
        self._stop = Stop()
        self._flow: Flow | None = None
        self._one_run = threading.Lock()
        self._interrupted = False

    def run(self, items: Iterable[T]) -> Summary:
        """Compute and commit all items, and return the books of this run.

        The first Ctrl-C stops in order and then raises KeyboardInterrupt; `summary` tells how far it came.
        """
        if self.settings.lane is Lane.ASYNCIO:
            _refuse_inside_a_loop()
            with stopping_on_interrupt(self._stop):
                asyncio.run(self.run_async(items))
            return self._ended()
        with self._running(items) as (lanes, intake, rest), stopping_on_interrupt(self._stop):
            while intake.passing and (item := next(rest, _END)) is not _END:
                intake.pass_over(item)
            intake.check_all_passed()
            doubtful = intake.doubtful_batch()
            if doubtful is not None:
                lanes.deliver(doubtful)
            lanes.run(rest)
        return self._ended()

    async def run_async(self, items: Iterable[T] | AsyncIterable[T]) -> Summary:
        """Compute and commit all items without blocking the event loop.

        A plain function is computed by threads (or processes), and its commit function may be async all the
        same. Cancelling the caller's task stops the stage at once.
        """
        if self.settings.lane is not Lane.ASYNCIO:
            return await self._run_aside(items)
        with self._running_async() as (lanes, intake):
            rest = as_async(items)
            while intake.passing and (item := await anext(rest, _END)) is not _END:
                intake.pass_over(item)
            intake.check_all_passed()
            doubtful = intake.doubtful_batch()
            if doubtful is not None:
                await lanes.deliver(doubtful)
            await lanes.run(rest)
        return self.summary

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop in order, from any thread: begin nothing new, grant the grace period, commit what is done."""
        self._stop.request(reason)

    def diagnostics(self) -> Diagnostics | None:
        """Return where everything stands, or None if no run has begun."""
        return None if self._flow is None else self._flow.diagnostics()

    def _ended(self) -> Summary:
        # Also when everything was done by then: Ctrl-C means that the program is to end.
        if self._interrupted:
            raise KeyboardInterrupt
        return self.summary

    async def _run_aside(self, items: Iterable[T] | AsyncIterable[T]) -> Summary:
        if isinstance(items, AsyncIterable):
            raise BadInput("a plain function takes a plain iterable; give the stage an async function")
        loop = asyncio.get_running_loop()
        commit = self.settings.commit

        def commit_in_loop(batch: CommitBatch[R]) -> None:
            async def call() -> None:
                answer = commit(batch) if commit else None
                if isinstance(answer, Awaitable):
                    await answer

            asyncio.run_coroutine_threadsafe(call(), loop).result()

        if commit is not None:
            self.settings = replace(self.settings, commit=commit_in_loop)
        running = loop.run_in_executor(None, self.run, items)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait([running])
            raise
        finally:
            self.settings = replace(self.settings, commit=commit)

    @contextmanager
    def _running(self, items: Iterable[T]) -> Iterator[tuple[ThreadLanes, Intake, Iterator[T]]]:
        with self._books(_length(items)) as (flow, intake, commit_lane, progress):
            lanes = ThreadLanes(self.settings, flow, intake, commit_lane, stop=self._stop, progress=progress)
            yield lanes, intake, iter(items)

    @contextmanager
    def _running_async(self) -> Iterator[tuple[AsyncLanes, Intake]]:
        with self._books(None) as (flow, intake, commit_lane, progress):
            yield (
                AsyncLanes(self.settings, flow, intake, commit_lane, stop=self._stop, progress=progress),
                intake,
            )

    @contextmanager
    def _books(self, length: int | None) -> Iterator[tuple[Flow, Intake, CommitLane, ProgressDisplay]]:
        """Open the journal, keep the books while the lanes run, and close everything in order."""
        settings = self.settings
        with self._one_at_a_time() as stop, ExitStack() as opened:
            summary = self.summary = Summary(settings.name)
            journal = None
            if settings.journal is not None:
                journal = Journal(settings.journal, settings.name, settings.clock.wall_ms())
                opened.callback(journal.abandon)
                summary.resumed = journal.first
            flow = self._flow = Flow(
                first=summary.resumed,
                active=settings.windows.active,
                policy=settings.policy,
                buffer_bytes=settings.buffer_bytes,
            )
            progress = self._progress(length, summary.resumed)
            opened.callback(progress.close)
            plan = WindowPlan(settings.windows, settings.cost_of, settings.size_of)
            intake = Intake(plan, settings.key, journal, travels=settings.lane is Lane.PROCESSES)
            began = settings.clock.monotonic()
            try:
                yield flow, intake, CommitLane(journal, summary), progress
                if journal is not None:
                    journal.close(flow.started, complete=flow.is_done)
                    summary.syncs = journal.syncs
                summary.complete = flow.is_done
            finally:
                summary.stopped = "" if summary.complete else stop.reason
                summary.started, summary.retried = flow.started, flow.retried
                summary.reclaimed, summary.stale = flow.reclaimed, flow.stale
                summary.seconds = settings.clock.monotonic() - began

    @contextmanager
    def _one_at_a_time(self) -> Iterator[Stop]:
        if not self._one_run.acquire(blocking=False):
            raise BadInput("this stage is running; make another one for other items")
        stop = self._stop
        try:
            yield stop
        finally:
            self._interrupted = stop.interrupted
            self._stop = Stop()
            self._one_run.release()

    def _progress(self, length: int | None, done: int) -> ProgressDisplay:
        settings = self.settings
        total = length if settings.total is None else settings.total
        return progress_on(
            wanted=settings.progress, name=settings.name, total=total, done=done, clock=settings.clock
        )


_END: Any = object()


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WrongColour("an event loop is running here; say `await stage.run_async(items)`")


def _length(items: object) -> int | None:
    return len(items) if hasattr(items, "__len__") else None
