"""A worker that moves only when your test tells it to, with time and death under control.

Everything is real but the clock: the store, the claims, the leases, the replay. One call of `work` claims the
next due job and runs it until it ends, waits, or is given back. `die` inside a function is what `kill -9` is
for it: nothing after it is believed, and the lease stays until `expire` lets it run out.

    clock = VirtualClock()
    app = Tally("sqlite:///test.db", clock=clock)
    worker = SteppedWorker(app, clock)
    job = order.submit(7)
    assert worker.work() == "Await"  # it waits for a signal
    job.send("paid", True)
    assert worker.work() == "EndJob"
    assert check_books(app) == []

A test that wants a real process to die at a commit starts it with the variable `TALLYSTICK_CRASH_AT`: with
`sqlite.commit.before:2` it is killed before its second commit.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias

from tallystick.app.api.runtime import Runtime
from tallystick.app.api.tally import Tally
from tallystick.app.api.workflows import AsyncWorkflow
from tallystick.app.running.leaving import Unwind
from tallystick.clock import VirtualClock
from tallystick.core.audit.book import Finding
from tallystick.core.audit.job_view import AbortReason
from tallystick.engine.audit import audit
from tallystick.engine.audit.whole_store import verify
from tallystick.engine.pending_writes import Blocked, Handed
from tallystick.engine.segment import Segment
from tallystick.engine.sweep import ask_probes, end_overdue, sweep
from tallystick.store.api import Bundle, ClaimJobs, Effects, Queues, Schedules
from tallystick.worker.clockwork import Clockwork

__all__ = [
    "LEASE_MS",
    "ClaimedSegment",
    "Death",
    "SteppedWorker",
    "VirtualClock",
    "ask_effects",
    "cancel_overdue",
    "check_books",
    "check_store",
    "count_callers",
    "count_expired",
    "count_flushes",
    "count_jobs",
    "die",
    "is_at_rest",
    "ms_to_next_tick",
    "open_store",
    "reclaim",
    "tick_schedules",
]

LEASE_MS = 10_000
"""How long the lease of a job lasts that a stepped worker has claimed."""

ClaimedSegment: TypeAlias = Segment
"""A job that was claimed and has not been run yet: pass it to `SteppedWorker.run`."""

_COUNTED_MAX = 100

_leases = itertools.count(1)


class Death(Unwind):
    """The process dies here: nothing that the function does after this is believed."""

    latest: ClassVar[Death | None] = None
    """The death that the running segment is to be judged by, also if its function has caught it."""

    def __init__(self) -> None:
        """Note it, in case that the function catches it."""
        super().__init__("dead", None)
        Death.latest = self


def die() -> NoReturn:
    """Die here, inside a workflow or a step: `work` answers "died"."""
    raise Death


def _has_died() -> bool:
    return Death.latest is not None


def check_books(app: Tally) -> list[Finding]:
    """Return what is wrong with the books of all jobs: digits, chains, counts; empty when all is well."""
    return audit(app.runtime().store).findings


def check_store(app: Tally) -> list[Finding]:
    """Return what is wrong with anything that the store keeps, as `tally verify` does; empty when well."""
    return verify(app.runtime().store).findings


def open_store(app: Tally) -> None:
    """Open the store now, as the first use of a Tally does, and create it if it is not there."""
    app.runtime()


def count_jobs(app: Tally) -> dict[str, int]:
    """Return how many jobs stand in each state; a state without jobs is left out."""
    return app.runtime().store.counts()


def count_expired(app: Tally) -> int:
    """Return how many attempts have a lease that has run out and were not taken back, up to a hundred."""
    return len(app.runtime().store.expired(_COUNTED_MAX))


def count_flushes(app: Tally) -> int:
    """Return how many transactions this process has written; each holds all that gathered meanwhile."""
    return app.runtime().committer.flushes


def count_callers(app: Tally) -> int:
    """Return how many jobs callers in this process wait for, in `result` or in an `await`."""
    return app.runtime().results.awaited


def is_at_rest(app: Tally) -> bool:
    """Tell whether the worker of this process has nothing to do: all slots are free, and no job is due."""
    worker = app.runtime().worker
    return worker is None or (not worker.running and worker.idle)


def ms_to_next_tick(app: Tally) -> int | None:
    """Return how long it is until a schedule makes its next job; None without schedules."""
    store = app.runtime().store
    assert isinstance(store, Schedules), "it keeps no schedules"
    return store.next_tick()


def reclaim(app: Tally) -> int:
    """Take back what was held under leases that are over, and return how many attempts that were."""
    return sweep(app.runtime().store, app.runtime().committer)


def cancel_overdue(app: Tally) -> list[str]:
    """End the jobs whose grace is over, cancel those whose deadline is, and return which these were."""
    return [each.job_id for each in end_overdue(app.runtime().store, app.runtime().committer)]


def ask_effects(app: Tally) -> int:
    """Ask probes of effects in doubt whose time has come, return how many; a worker does it by itself."""
    runtime = app.runtime()
    assert isinstance(runtime.store, Effects), "it keeps no effects"
    return ask_probes(runtime.store, runtime.committer, app.probes, _asked)


def _asked(asks: Callable[[], Any]) -> Any:  # noqa: ANN401 (what a probe says)
    return asyncio.run(asks()) if inspect.iscoroutinefunction(asks) else asks()


def tick_schedules(app: Tally) -> None:
    """Make jobs of the ticks that are due, of all schedules; a worker does it by itself."""
    runtime = app.runtime()
    Clockwork(runtime.store, runtime.committer, runtime.clock, runtime.ids).turn()


class SteppedWorker:
    """A worker that moves only when it is told to; its Tally and the test share the clock."""

    def __init__(
        self, app: Tally, clock: VirtualClock, owner: str = "stepped", queues: Sequence[str] = ("default",)
    ) -> None:
        """Serve the workflows of a Tally on these queues; nothing is claimed yet."""
        self.app = app
        self.clock = clock
        self.owner = owner
        self.queues = tuple(queues)

    @property
    def runtime(self) -> Runtime:
        """Return what the Tally has open."""
        return self.app.runtime()

    def work(self) -> str:
        """Claim the next due job, run it, and say what became of it.

        "EndJob": it has ended, well or badly. "Await": it waits. "Cycle": it begins its next turn.
        "EndAttempt": it was given back, to be tried again or held. "died": the function died. "lost": its
        lease was over, and nothing was written. "idle": no job is due.
        """
        segment = self.claim()
        return "idle" if segment is None else self.run(segment)

    def work_all(self) -> None:
        """Work until no job is due any more."""
        while self.work() != "idle":
            continue

    def claim(self) -> ClaimedSegment | None:
        """Claim the next due job, and do not run it yet."""
        claimed = self.claim_many(1)
        return claimed[0] if claimed else None

    def claim_many(self, limit: int) -> list[ClaimedSegment]:
        """Claim so many due jobs at once."""
        request = ClaimJobs(
            self.owner,
            self.queues,
            frozenset(self.app.workflows),
            limit,
            LEASE_MS,
            lambda: f"lease-{next(_leases)}",
        )
        claimed = self.runtime.committer.call((request,))
        assert isinstance(claimed, list)
        return [Segment(job, self.clock, self.owner) for job in claimed]

    def run(self, segment: ClaimedSegment) -> str:
        """Run what was claimed and say what became of it, as `work` does."""
        workflow = self.app.workflows[segment.claimed.handler, segment.claimed.version]
        Death.latest = None
        try:
            bundle = (
                asyncio.run(self._on_a_loop(workflow, segment))
                if isinstance(workflow, AsyncWorkflow)
                else workflow.run(segment)
            )
        finally:
            refusal = segment.handed.answer() if isinstance(segment.handed, Blocked) else None
        if _has_died():
            return "died"
        if bundle is None or refusal is not None:
            return "Await" if segment.suspended and refusal is None else "lost"
        self.runtime.committer.call(bundle)
        return type(bundle[-1]).__name__

    def run_together(self, segments: Sequence[ClaimedSegment]) -> None:
        """Run claimed jobs of sync workflows and write their ends in one flush."""
        flows = [self.app.workflows[each.claimed.handler, each.claimed.version] for each in segments]
        ends = [flow.run(each) for flow, each in zip(flows, segments, strict=True)]
        for outcome in self.runtime.committer.call_all([end for end in ends if end is not None]):
            if isinstance(outcome, BaseException):
                raise outcome

    def ms_to_work(self) -> int | None:
        """Return how long limits of its queues keep jobs back that are due; None if no job waits in them."""
        store = self.runtime.store
        assert isinstance(store, Queues), "it keeps no queues"
        return store.rest_of(self.queues)

    def give_back(self, segment: ClaimedSegment) -> None:
        """Leave what was claimed to others, as a worker does that stops; it is not charged to the job."""
        self.runtime.committer.call(segment.released(AbortReason.RELEASED, charged=False))

    def expire(self) -> int:
        """Let every lease run out, take back what the dead held, and return how many attempts that were."""
        self.clock.advance(LEASE_MS)
        return reclaim(self.app)

    async def _on_a_loop(
        self, workflow: AsyncWorkflow[..., object], segment: ClaimedSegment
    ) -> Bundle | None:
        try:
            return await workflow.run_async(segment, self.runtime.lane())
        finally:
            if isinstance(segment.handed, Handed):
                refusal = await segment.handed.settled()
                if refusal is not None:
                    raise refusal
