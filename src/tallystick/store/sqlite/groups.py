"""Groups: one activity in the parent, one countdown a child, one closer.

The closer's own bundle leaves one message for the parent, whose identifier follows from the group:
whoever comes second leaves nothing, so the parent is woken once, in a constant number of statements a
child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.core.lifecycles import JobState
from tallystick.store.api import Spawn
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import Batch

FAIL_FAST = "fail_fast"


def spawn(batch: Batch, request: Spawn) -> None:
    """Open the group unless it is open, and insert those of the children that are not there yet."""
    batch.check_fence(request.fence)
    job_id, group = request.fence.job_id, request.group
    before = batch.connection.total_changes()
    mode = FAIL_FAST if request.fail_fast else None
    row = (job_id, *group, request.fence.attempt, request.at, request.total, request.threshold, mode)
    batch.cursor.execute(sql("insert_group"), row)
    if batch.connection.total_changes() > before:
        batch.many("open_more", [(*request.fence[:2], 1)], [request.fence])
    for job, fact in request.children:
        event = batch.placed(fact)
        before = batch.connection.total_changes()
        place = (event.n, event.event_hash, job_id, str(group))
        batch.cursor.execute(sql("insert_child"), (*job[:12], *place))
        if batch.connection.total_changes() > before:
            batch.many("insert_event", [event], [request.fence])


def count_child(batch: Batch, job_id: str, home: tuple[str, str], state: str) -> None:
    """Count a child that has ended, well or badly, and let the one that closes the group wake its parent."""
    parent, step = home
    dimension, _, rest = step.partition(":")
    name, _, occurrence = rest.rpartition("#")
    place = (parent, int(dimension), name, int(occurrence))
    failed = state != JobState.SUCCEEDED
    entered = list(batch.cursor.execute(sql("enter_group"), (*place, int(failed))))
    if not entered:
        return  # the group was closed without this child: enough had ended, or its parent has
    entry, threshold, mode = entered[0]
    guid = f"child:{job_id}"
    batch.cursor.execute(sql("insert_child_message"), (guid, *place, state, batch.wall, entry))
    ((hit,),) = batch.cursor.execute(sql("count_down_group"), (*place, guid, -1, threshold))
    batch.cursor.execute(sql("close_child"), (guid, parent, batch.wall))
    if hit or (failed and mode == FAIL_FAST):
        word = (f"join:{parent}:{step}", parent, *place[1:], "resume", None, None, batch.wall)
        batch.cursor.execute(sql("insert_message"), word)
        batch.cursor.execute(sql("wake"), (parent, batch.wall, name, "group"))
