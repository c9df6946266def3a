"""Durable execution for Python that keeps books.

Write plain functions; a crash at any point loses nothing and repeats nothing, and afterwards anybody can
check the books. Everything here is loaded when it is first used, so that a small command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallystick.app.children import Child, gather
    from tallystick.app.context import Cancelled
    from tallystick.app.draws import now, random, uuid
    from tallystick.app.job import Event, Job
    from tallystick.app.patches import patched
    from tallystick.app.retrying import Retry
    from tallystick.app.steps import Tx
    from tallystick.app.tally import Tally
    from tallystick.app.threads import thread_map
    from tallystick.app.waits import again, sleep, wait
    from tallystick.errors import (
        ChildrenFailed,
        Fatal,
        JobCancelled,
        JobFailed,
        OutsideWorkflow,
        StepFailed,
        TallyError,
    )

__version__ = "0.1.0"

_HOMES = {
    "Cancelled": "app.context",
    "Child": "app.children",
    "ChildrenFailed": "errors",
    "Event": "app.job",
    "Fatal": "errors",
    "Job": "app.job",
    "JobCancelled": "errors",
    "JobFailed": "errors",
    "OutsideWorkflow": "errors",
    "Retry": "app.retrying",
    "StepFailed": "errors",
    "Tally": "app.tally",
    "TallyError": "errors",
    "Tx": "app.steps",
    "again": "app.waits",
    "gather": "app.children",
    "now": "app.draws",
    "patched": "app.patches",
    "random": "app.draws",
    "sleep": "app.waits",
    "thread_map": "app.threads",
    "uuid": "app.draws",
    "wait": "app.waits",
}

__all__ = [
    "Cancelled",
    "Child",
    "ChildrenFailed",
    "Event",
    "Fatal",
    "Job",
    "JobCancelled",
    "JobFailed",
    "OutsideWorkflow",
    "Retry",
    "StepFailed",
    "Tally",
    "TallyError",
    "Tx",
    "again",
    "gather",
    "now",
    "patched",
    "random",
    "sleep",
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
