"""Changing a workflow while jobs of it are under way: one recorded answer per job and name."""

from __future__ import annotations

from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.core.limits import check_name
from tallystick.errors import Misuse


def patched(name: str) -> bool:
    """Tell whether this job goes the new way: True unless it had passed this point before the change.

    The first answer is kept with the job, so that it stays the same on every replay and at every call with
    this name; a turn that `again` begins asks anew. Outside a workflow, in a unit test, everything is new.
    """
    check_name("patch", name)
    context = current.get()
    if isinstance(context, Inside):
        raise Misuse(f"patched({name!r}) is a question of the workflow; ask it outside the step")
    if not isinstance(context, WorkflowContext):
        return True
    context.check()
    return context.segment.decide(f"patched:{name}")
