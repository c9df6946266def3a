"""Durable execution for Python that keeps books.

Write plain functions; a crash at any point loses nothing and repeats nothing, and every step is recorded and
can be verified. Everything here is loaded when it is first used, so that a small command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tallystick.version import VERSION

if TYPE_CHECKING:
    from tallystick.app.api.job import Job
    from tallystick.app.api.retrying import Retry
    from tallystick.app.api.steps import Tx
    from tallystick.app.api.tally import Tally
    from tallystick.app.asking.history import Event
    from tallystick.app.asking.sentence import Why
    from tallystick.app.effects.answers import DidNotHappen, Happened, Key, Unknown
    from tallystick.app.remote.protocols import RemoteStep
    from tallystick.app.replay.children import Child, Started, gather, start
    from tallystick.app.replay.current import Current, current
    from tallystick.app.replay.patches import patched
    from tallystick.app.replay.recorded_values import now, random, uuid
    from tallystick.app.replay.shown_values import progress, set_value
    from tallystick.app.replay.waits import again, sleep, wait
    from tallystick.app.running.async_tx import AsyncTx
    from tallystick.app.running.leaving import Cancelled
    from tallystick.app.running.thread_map import thread_map
    from tallystick.errors import (
        ChildrenFailed,
        Fatal,
        JobCancelled,
        JobFailed,
        NotDone,
        OutsideWorkflow,
        StepFailed,
        TallyError,
    )
    from tallystick.remote.publishers.endpoint import Pull
    from tallystick.remote.publishers.nats import Nats
    from tallystick.remote.publishers.redis import RedisStream
    from tallystick.remote.publishers.webhook import Webhook
    from tallystick.store.api import Delivered

__version__ = VERSION

_HOMES = {
    "Cancelled": "app.running.leaving",
    "Child": "app.replay.children",
    "ChildrenFailed": "errors",
    "Current": "app.replay.current",
    "Delivered": "store.api",
    "DidNotHappen": "app.effects.answers",
    "Event": "app.asking.history",
    "Fatal": "errors",
    "Happened": "app.effects.answers",
    "Job": "app.api.job",
    "JobCancelled": "errors",
    "JobFailed": "errors",
    "Key": "app.effects.answers",
    "Nats": "remote.publishers.nats",
    "NotDone": "errors",
    "OutsideWorkflow": "errors",
    "Pull": "remote.publishers.endpoint",
    "RedisStream": "remote.publishers.redis",
    "RemoteStep": "app.remote.protocols",
    "Retry": "app.api.retrying",
    "Started": "app.replay.children",
    "StepFailed": "errors",
    "Tally": "app.api.tally",
    "TallyError": "errors",
    "AsyncTx": "app.running.async_tx",
    "Tx": "app.api.steps",
    "Unknown": "app.effects.answers",
    "Webhook": "remote.publishers.webhook",
    "Why": "app.asking.why",
    "again": "app.replay.waits",
    "current": "app.replay.current",
    "gather": "app.replay.children",
    "now": "app.replay.recorded_values",
    "patched": "app.replay.patches",
    "progress": "app.replay.shown_values",
    "random": "app.replay.recorded_values",
    "set_value": "app.replay.shown_values",
    "sleep": "app.replay.waits",
    "start": "app.replay.children",
    "thread_map": "app.running.thread_map",
    "uuid": "app.replay.recorded_values",
    "wait": "app.replay.waits",
}

__all__ = [
    "AsyncTx",
    "Cancelled",
    "Child",
    "ChildrenFailed",
    "Current",
    "Delivered",
    "DidNotHappen",
    "Event",
    "Fatal",
    "Happened",
    "Job",
    "JobCancelled",
    "JobFailed",
    "Key",
    "Nats",
    "NotDone",
    "OutsideWorkflow",
    "Pull",
    "RedisStream",
    "RemoteStep",
    "Retry",
    "Started",
    "StepFailed",
    "Tally",
    "TallyError",
    "Tx",
    "Unknown",
    "Webhook",
    "Why",
    "again",
    "current",
    "gather",
    "now",
    "patched",
    "progress",
    "random",
    "set_value",
    "sleep",
    "start",
    "thread_map",
    "uuid",
    "wait",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
