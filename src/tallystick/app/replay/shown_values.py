"""What a job shows of itself while it runs: values by name, for others to read and to watch."""

from __future__ import annotations

from functools import partial
from typing import Final

from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.app.values.codec import encode
from tallystick.core.limits import VALUE_BYTES_MAX, check_name, check_text
from tallystick.engine.pending_writes import Called
from tallystick.errors import BadInput, Misuse, OutsideWorkflow

PROGRESS: Final = "progress"
"""The name under which `progress` keeps how far a job is."""


def set_value(name: str, value: object) -> None:
    """Show a value of this job under a name, in the place of the one before; it never waits.

    In a workflow it is durable before the next step begins, and a replay does not set it again. In a step it
    is written at once, but not more often than once per second; the last one becomes durable with the step.
    """
    text = encode(value, f"the value {check_name('value', name)}")
    check_text("value", text, VALUE_BYTES_MAX)
    context = current.get()
    if isinstance(context, WorkflowContext):
        _set_in_workflow(context, name, text)
    elif isinstance(context, Inside) and context.context is not None:
        if context.in_tx:
            raise Misuse(f"set the value {name} beside the transaction, not in it: that may be rolled back")
        _set_in_step(context.context, name, text)
    else:
        raise OutsideWorkflow(f"the value {name} was set where no job runs")


def progress(done: float, total: float) -> None:
    """Show how far this job is: `tally show` and `tally list` draw it."""
    if not 0 <= done <= total:
        raise BadInput(f"progress is from 0 to its total, not {done} of {total}")
    set_value(PROGRESS, {"done": done, "total": total})


def _set_in_workflow(context: WorkflowContext, name: str, text: str) -> None:
    context.check()
    if context.elsewhere:
        raise Misuse(
            f"the value {name} was set in a thread beside the workflow's: set it there, or in a step"
        )
    segment = context.segment
    # No step has such a name.
    known, found = segment.note(f"={name}")
    if not known:
        segment.show(name, text, str(found))
    elif segment.fence.attempt == 1:
        # The marks that a fork begins with are copies: what it shows, it has never written itself.
        segment.show(name, text)


def _set_in_step(context: WorkflowContext, name: str, text: str) -> None:
    segment, runtime = context.segment, context.runtime
    if segment.over or segment.lost:
        context.check()
    shown = segment.show(name, text)
    bundle = shown.at_once(runtime.clock.boot_ms())
    if bundle:
        runtime.committer.put([Called(bundle, partial(shown.answered, bundle))])
