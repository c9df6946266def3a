"""Running segments one at a time, in this thread, with time and death under control.

`Death` is what a `kill -9` looks like from inside: nothing after it runs or is written, the lease stays.
"""

from __future__ import annotations

import asyncio
import itertools

from tallystick.app.context import Unwind
from tallystick.clock import VirtualClock
from tallystick.engine.requests import Blocked, Handed
from tallystick.engine.segment import Segment
from tallystick.engine.sweep import sweep
from tallystick.store.api import ClaimJobs

LEASE_MS = 10_000
_leases = itertools.count(1)


async def _on_a_loop(app, workflow, segment: Segment):
    try:
        return await workflow.run_async(segment, app.runtime().lane())
    finally:
        if isinstance(segment.handed, Handed):
            refusal = await segment.handed.settled()
            if refusal is not None:
                raise refusal


class Death(Unwind):
    """The process dies here: nothing that the function does after this is believed."""

    latest: Death | None = None

    def __init__(self) -> None:
        super().__init__("dead", None)
        Death.latest = self


def die() -> None:
    """Die here."""
    raise Death


class Hand:
    """A worker that moves only when it is told to."""

    def __init__(self, app, clock: VirtualClock, owner: str = "hand") -> None:
        self.app = app
        self.clock = clock
        self.owner = owner

    @property
    def runtime(self):
        return self.app.runtime()

    def claim(self) -> Segment | None:
        """Claim the next due job."""
        claimed = self.claim_many(1)
        return claimed[0] if claimed else None

    def claim_many(self, limit: int) -> list[Segment]:
        """Claim due jobs."""
        handlers = frozenset(self.app.workflows)
        request = ClaimJobs(
            self.owner, ("default",), handlers, limit, LEASE_MS, lambda: f"lease-{next(_leases)}"
        )
        return [Segment(job, self.clock) for job in self.runtime.committer.call((request,))]

    def run(self, segment: Segment) -> str:
        """Run a claimed segment to its end and say what became of it."""
        workflow = self.app.workflows[segment.claimed.handler, segment.claimed.version]
        Death.latest = None
        try:
            bundle = (
                asyncio.run(_on_a_loop(self.app, workflow, segment))
                if workflow.is_async
                else workflow.run(segment)
            )
        finally:
            refusal = segment.handed.answer() if isinstance(segment.handed, Blocked) else None
        if Death.latest is not None:
            return "died"
        if bundle is None or refusal is not None:
            return "lost"
        self.runtime.committer.call(bundle)
        return type(bundle[-1]).__name__

    def work_all(self) -> None:
        """Work until nothing is due any more."""
        while self.work() != "idle":
            continue

    def work(self) -> str:
        """Claim and run one segment."""
        segment = self.claim()
        return "idle" if segment is None else self.run(segment)

    def expire(self) -> int:
        """Let every lease run out and reclaim."""
        self.clock.advance(LEASE_MS)
        return sweep(self.runtime.store, self.runtime.committer, self.clock)
