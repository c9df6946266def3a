"""The options of a worker, checked when they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tallystick.core.durations import duration_ms
from tallystick.defaults import BATCH_SCHEDULING, QUEUE, WORKER_GRACE, WORKER_LEASE, WORKER_SLOTS
from tallystick.engine.sweep import Probe
from tallystick.errors import BadInput
from tallystick.remote.publishers.endpoint import Endpoint

LEASE_MS_MIN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How much a worker takes on, and how long a crash of it may go unnoticed."""

    queues: tuple[str, ...] = (QUEUE,)
    concurrency: int = WORKER_SLOTS
    lease_ms: int = duration_ms(WORKER_LEASE)
    grace_ms: int = duration_ms(WORKER_GRACE)
    # How long finished jobs are kept; None is for ever.
    keep_ms: int | None = None
    keep_effects_ms: int | None = None
    # Whether it looks after remote steps whose time is over.
    expires: bool = False
    # Where it publishes directives, by address, and where reports on them may be sent over HTTP.
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    callback_url: str | None = None
    batch_scheduling: bool = BATCH_SCHEDULING
    # How it finds out what came of effects, by their names.
    probes: Mapping[str, Probe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise BadInput(f"a worker needs a whole number of slots, at least one, not {self.concurrency!r}")
        if not self.queues:
            raise BadInput("a worker that serves no queue would do nothing: name at least one")
        if self.lease_ms < LEASE_MS_MIN:
            raise BadInput(
                f"a lease of {self.lease_ms}ms ends before it can be renewed; give at least {LEASE_MS_MIN}ms"
            )
