"""What a worker can run: a function behind a name, seen as something that turns a segment into its ending."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from tallystick.engine.committer import LoopLane
from tallystick.engine.segment import Segment
from tallystick.store.api import Bundle

_log = logging.getLogger("tallystick.worker")


class Handler(Protocol):
    """A workflow as the worker sees it.

    Running never raises for what the user's function does: the answer is the bundle that ends the segment,
    or None when nothing may be written any more (the lease is lost, or the store is).
    """

    @property
    def name(self) -> str:
        """Return the name under which jobs ask for it."""
        ...

    @property
    def version(self) -> str:
        """Return the version of the code; jobs of another version wait for a worker that has it."""
        ...

    @property
    def is_async(self) -> bool:
        """Return whether it runs on the worker's event loop."""
        ...

    def run(self, segment: Segment) -> Bundle | None:
        """Run the segment in this thread."""
        ...

    def run_async(self, segment: Segment, lane: LoopLane) -> Coroutine[Any, Any, Bundle | None]:
        """Run the segment on the event loop of this lane."""
        ...


def report_broken(segment: Segment) -> None:
    """Report a fault of ours, inside `except`: it costs that segment its lease and no other anything."""
    _log.exception("job %s: the segment broke", segment.job_id, extra={"action": "segment.broken"})


def report_closed_over(segment: Segment) -> None:
    """Report a job whose function went on after its Tally was closed: it is left to its lease."""
    _log.warning(
        "job %s: the Tally was closed before its function returned",
        segment.job_id,
        extra={"action": "segment.closed_over"},
    )
