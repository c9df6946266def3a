"""One bundle written in the course of a call that runs no function of the user's."""

from __future__ import annotations

from typing import Any

from tallystick.app.api.retrying import ONCE
from tallystick.app.replay.call_drivers import drive, drive_async
from tallystick.app.replay.calls import Call, StepSpec, Write
from tallystick.app.replay.context import WorkflowContext
from tallystick.app.values.codec import Codec
from tallystick.store.api import Bundle, Outcome


def write(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Make a bundle durable, behind everything that this workflow has handed over, and return its outcome."""
    outcome: Outcome = drive(context, NO_BODY, _written(bundle, brings_work=brings_work))
    return outcome


async def write_async(context: WorkflowContext, bundle: Bundle, *, brings_work: bool = False) -> Outcome:
    """Do the same in a task."""
    outcome: Outcome = await drive_async(context, NO_BODY, _written(bundle, brings_work=brings_work))
    return outcome


def _written(bundle: Bundle, *, brings_work: bool) -> Call:
    """Write a bundle; if it brings work, idle slots of this process look for it in the same flush."""
    return (yield Write(bundle, brings_work))


# A call that only reads and writes rows of ours.
NO_BODY = StepSpec(
    name="wait",
    kind="wait",
    function=lambda: None,
    is_async=False,
    policy=ONCE.policy,
    timeout_ms=None,
    raises=(),
    codec=lambda: Codec(Any),
)
