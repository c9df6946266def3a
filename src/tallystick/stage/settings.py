"""The settings of a stage, checked once and then only read."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tallystick.clock import Clock
from tallystick.core.durations import duration_ms
from tallystick.core.limits import DURATION_MS_MAX, MIB
from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput
from tallystick.stage.sequence.policy import SlotPolicy
from tallystick.stage.windows import WindowLimits

WORKERS_MAX: Final = 1024
BATCH_ITEMS_MAX: Final = 1024
BATCH_BYTES_MAX: Final = 4 * MIB
BUFFER_BYTES: Final = 64 * MIB

# What time may heal. Everything else is a fact about the item and is not tried again.
TRANSIENT: Final = RetryPolicy(
    attempts_max=3,
    base_ms=200,
    retryable=frozenset({"OSError", "TimeoutError", "WorkerDied", "LeaseExpired"}),
    final=frozenset({"FileNotFoundError", "PermissionError", "IsADirectoryError", "NotADirectoryError"}),
)


class Lane(StrEnum):
    """Where items are computed."""

    THREADS = "threads"
    PROCESSES = "processes"
    ASYNCIO = "asyncio"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a run needs to know and nothing that it changes."""

    function: Callable[[Any], Any]
    commit: Callable[[Any], Any] | None
    name: str
    lane: Lane
    workers: int
    journal: Path | None
    policy: SlotPolicy
    windows: WindowLimits
    buffer_bytes: float
    grace_ms: int
    failures_max: int | None
    key: Callable[[Any], object] | None
    cost_of: Callable[[Any], float] | None
    size_of: Callable[[Any], int] | None
    progress: bool | None
    total: int | None
    has_timeout: bool
    clock: Clock


def lane_of(function: Callable[[Any], Any], lane: str | None) -> Lane:
    """Return the lane that fits the function, or raise if the wish does not."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    if lane is None:
        return Lane.ASYNCIO if is_async else Lane.THREADS
    if lane not in list(Lane):
        raise BadInput(f"{lane!r} is not a lane; there are {', '.join(Lane)}", lane=lane)
    if is_async != (lane == Lane.ASYNCIO):
        kind = "an async" if is_async else "a plain"
        raise BadInput(f"{kind} function cannot be computed by {lane}", lane=lane)
    return Lane(lane)


def workers_of(workers: int | None, lane: Lane) -> int:
    """Return how many items are computed at once: by default a few per core, one per core in processes."""
    cores = os.cpu_count() or 1
    usual = {Lane.THREADS: min(32, cores + 4), Lane.PROCESSES: cores, Lane.ASYNCIO: 64}[lane]
    chosen = usual if workers is None else workers
    if not 1 <= chosen <= WORKERS_MAX:
        raise BadInput(f"a stage has 1 to {WORKERS_MAX} workers, not {chosen}", workers=chosen)
    return chosen


def policy_of(retry: RetryPolicy | int | None, timeout: str | float | timedelta | None) -> SlotPolicy:
    """Return the slot policy of a stage: offers wait for ever, and so do leases without a timeout.

    Without a timeout a lease ends when its worker does, which the stage sees: threads cannot vanish, and a
    process that dies closes its pipe.
    """
    if isinstance(retry, int):
        retry = RetryPolicy(attempts_max=retry, base_ms=TRANSIENT.base_ms)
    lease_ms = DURATION_MS_MAX if timeout is None else max(1, duration_ms(timeout))
    return SlotPolicy(lease_ms=lease_ms, offer_ms=None, retry=retry or TRANSIENT)


def name_of(function: Callable[[Any], Any]) -> str:
    """Return the function's name, or its class's where it has none."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
