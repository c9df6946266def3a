"""Working: how a program runs the workers of a Tally, in the background or until it is told to stop."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tallystick.app.api.retrying import Duration
from tallystick.app.running.worker_block import WorkerBlock
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.defaults import BATCH_SCHEDULING, QUEUE, WORKER_GRACE, WORKER_LEASE, WORKER_SLOTS
from tallystick.engine.sweep import Probe
from tallystick.errors import BadInput
from tallystick.remote.publishers.endpoint import Endpoint
from tallystick.worker.hooks import Around
from tallystick.worker.options import WorkerOptions

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.app.api.workflows import AsyncWorkflow, Workflow
    from tallystick.worker.worker import Worker

# How often a program that works asks whether its worker can work at all.
_LOOK_SECONDS: Final = 0.25


class Working(ABC):
    """The part of a Tally that works."""

    @property
    @abstractmethod
    def workflows(self) -> Mapping[tuple[str, str], Workflow[..., Any] | AsyncWorkflow[..., Any]]:
        """Return what a worker can run."""

    @property
    @abstractmethod
    def keep_ms(self) -> int | None:
        """Return for how long finished jobs are kept."""

    @property
    @abstractmethod
    def keep_effects_ms(self) -> int | None:
        """Return for how long keys of effects are kept that have ended."""

    @property
    @abstractmethod
    def asks_remote_workers(self) -> bool:
        """Tell whether its jobs have remote steps, whose times its worker watches."""

    @property
    @abstractmethod
    def probes(self) -> dict[str, Probe]:
        """Return how a worker finds out what came of effects that are in doubt."""

    @property
    @abstractmethod
    def endpoints(self) -> dict[str, Endpoint]:
        """Return where a worker publishes directives."""

    @property
    @abstractmethod
    def callback_url(self) -> str | None:
        """Return where remote workers may report over HTTP."""

    @property
    @abstractmethod
    def around(self) -> Around:
        """Return what is called before the first claim and after the last segment."""

    @abstractmethod
    def declare_schedules(self) -> None:
        """Put the schedules in force that were declared here."""

    @abstractmethod
    def declare_queues(self) -> frozenset[str]:
        """Put the limits of queues in force that were declared here, and return the names of the queues."""

    @abstractmethod
    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store and what belongs to it."""

    def worker(
        self,
        *,
        queues: Sequence[str] = (QUEUE,),
        concurrency: int = WORKER_SLOTS,
        lease: Duration = WORKER_LEASE,
        grace: Duration = WORKER_GRACE,
        batch_scheduling: bool = BATCH_SCHEDULING,
    ) -> WorkerBlock:
        """Run a worker in the background while the block lasts: `with app.worker():`.

        `async with app.worker():` runs async workflows on the loop of the block, where clients that were made
        there can be used. `batch_scheduling=False` leaves the threads of sync workflows to the ordinary
        scheduler of Linux.
        """
        if isinstance(queues, str):
            raise BadInput(f"queues is a list of names: write queues=[{queues!r}]")
        options = worker_options(self, queues, concurrency, lease, grace, batch_scheduling=batch_scheduling)
        return WorkerBlock(partial(start_worker, self, options), lambda: self.runtime().stop_worker())

    def work(
        self,
        *,
        queues: Sequence[str] = (QUEUE,),
        concurrency: int = WORKER_SLOTS,
        lease: Duration = WORKER_LEASE,
        grace: Duration = WORKER_GRACE,
        batch_scheduling: bool = BATCH_SCHEDULING,
        until: threading.Event | None = None,
    ) -> None:
        """Work until interrupted, or until the event is set; running jobs get the grace to end.

        Raise what keeps the worker from its first look for good, such as a role that may only read.
        """
        until = until or threading.Event()
        with self.worker(
            queues=queues,
            concurrency=concurrency,
            lease=lease,
            grace=grace,
            batch_scheduling=batch_scheduling,
        ):
            while not until.wait(_LOOK_SECONDS) and (worker := self.runtime().worker) is not None:
                worker.refusals.check()

    async def work_aio(
        self,
        *,
        queues: Sequence[str] = (QUEUE,),
        concurrency: int = WORKER_SLOTS,
        lease: Duration = WORKER_LEASE,
        grace: Duration = WORKER_GRACE,
        batch_scheduling: bool = BATCH_SCHEDULING,
        until: asyncio.Event | None = None,
    ) -> None:
        """Work on this loop until the event is set or this task is cancelled; as `work` in all else."""
        until = until or asyncio.Event()
        async with self.worker(
            queues=queues,
            concurrency=concurrency,
            lease=lease,
            grace=grace,
            batch_scheduling=batch_scheduling,
        ):
            while not until.is_set() and (worker := self.runtime().worker) is not None:
                worker.refusals.check()
                with suppress(TimeoutError):
                    await asyncio.wait_for(until.wait(), _LOOK_SECONDS)


def worker_options(
    app: Working,
    queues: Sequence[str],
    concurrency: int,
    lease: Duration,
    grace: Duration,
    *,
    batch_scheduling: bool,
) -> WorkerOptions:
    """Return how the worker of a program works: as it was asked, and as the program declares."""
    return WorkerOptions(
        queues=tuple(check_name("queue", queue) for queue in queues),
        concurrency=concurrency,
        lease_ms=duration_ms(lease),
        grace_ms=duration_ms(grace),
        keep_ms=app.keep_ms,
        keep_effects_ms=app.keep_effects_ms,
        expires=app.asks_remote_workers,
        endpoints=app.endpoints,
        callback_url=app.callback_url,
        batch_scheduling=batch_scheduling,
        probes=app.probes,
    )


def start_worker(
    app: Working, options: WorkerOptions, loop: asyncio.AbstractEventLoop | None = None
) -> Worker:
    """Start the worker of a program, after the schedules and limits that it declares are in force."""
    for workflow in app.workflows.values():
        workflow.check()
    app.declare_schedules()
    limited = app.declare_queues()
    return app.runtime().start_worker(app.workflows, options, app.around, loop, limited)
