"""Groups: one activity in the parent, one countdown a child, one closer.

The closer's own bundle leaves one message for the parent, whose identifier follows from the group:
whoever comes second leaves nothing, so the parent is woken once, in a constant number of statements a
child.
"""

from __future__ import annotations

from tallystick.core.lifecycles import JobState
from tallystick.errors import InvariantBroken
from tallystick.store.api import CountDown, Spawn
from tallystick.store.writing import Writing, insist

FAIL_FAST = "fail_fast"


def spawn(batch: Writing, request: Spawn) -> bool:
    """Open the group unless it is open, insert those children that are missing, and tell if all are there."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    job_id, group = request.fence.job_id, request.group
    mode = FAIL_FAST if request.fail_fast else None
    row = (job_id, *group, request.fence.attempt, request.at, request.total, request.threshold, mode)
    if batch.changed("insert_group", row):
        batch.many("open_more", [(*request.fence[:2], 1)], [request.fence])
    elif _spawned(batch, request) == request.total:
        return True
    events = [batch.placed(fact) for _job, fact in request.children]
    rows = [
        (*job[:12], event.n, event.event_hash, job_id, str(group))
        for (job, _fact), event in zip(request.children, events, strict=True)
    ]
    born = [event for event, count in zip(events, batch.each("insert_child", rows), strict=True) if count]
    batch.many("insert_event", born, [request.fence] * len(born))
    return False


def _spawned(batch: Writing, request: Spawn) -> int:
    ((count,),) = batch.rows("count_children", (request.fence.job_id, str(request.group)))
    return int(count)


def count_child(batch: Writing, job_id: str, home: tuple[str, str], state: str) -> None:
    """Count a child that has ended, well or badly, and let the one that closes the group wake its parent."""
    parent, step = home
    dimension, _, rest = step.partition(":")
    name, _, occurrence = rest.rpartition("#")
    place = (parent, int(dimension), name, int(occurrence))
    batch.lock(parent)
    failed = state != JobState.SUCCEEDED
    entered = batch.rows("enter_group", (*place, int(failed)))
    if not entered:
        return  # the group was closed without this child: enough had ended, or its parent has
    entry, threshold, mode = entered[0]
    guid = f"child:{job_id}"
    insist(batch, "insert_child_message", (guid, *place, state, batch.wall, entry))
    hit = batch.count_down(CountDown(*place, guid, -1, threshold))
    if hit is None:
        raise InvariantBroken(
            f"group {step} of job {parent} closed while child {job_id} ended", job_id=parent
        )
    insist(batch, "close_child", (guid, parent, batch.wall))
    if hit or (failed and mode == FAIL_FAST):
        word = (f"join:{parent}:{step}", parent, *place[1:], "resume", None, None, batch.wall)
        batch.run("insert_message", word)
        batch.run("wake", (parent, batch.wall, name, "group"))
