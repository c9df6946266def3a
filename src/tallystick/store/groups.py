"""Groups: one activity in the parent, one countdown a child, one closer.

The closer's own bundle leaves one message for the parent, whose identifier follows from the group:
whoever comes second leaves nothing, so the parent is woken once. A child is counted by one statement,
however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from tallystick.core.lifecycles import JobState
from tallystick.store.api import Group, Spawn
from tallystick.store.writing import Writing

FAIL_FAST = "fail_fast"


def spawn(batch: Writing, request: Spawn) -> bool:
    """Open the group unless it is open, insert those children that are missing, and tell if all are there."""
    batch.lock(request.fence.job_id)
    batch.check_fence(request.fence)
    job_id, group = request.fence.job_id, request.group
    mode = FAIL_FAST if request.fail_fast else None
    row = (job_id, *group, request.fence.attempt, request.at, request.total, request.threshold, mode)
    known: set[str] = set()
    if batch.changed("insert_group", row):
        batch.many("open_more", [(*request.fence[:2], 1)], request.fence)
    else:
        # Bundles are written in order and each whole, so the children that are there are the first ones.
        children = [job.job_id for job, _fact in request.children]
        last = group.child_id(job_id, request.total - 1)
        known = _known(batch, [*children[:1], last])
        if last in known:
            return True
        if known:
            known = _known(batch, children)
    born = [(job, batch.placed(fact)) for job, fact in request.children if job.job_id not in known]
    place = (job_id, str(group))
    rows = [
        (
            *job[:7],
            batch.moment(job.ready_at, job.created_at),
            None if job.deadline_at is None else batch.moment(job.deadline_at, job.created_at),
            batch.wall,
            *job[10:12],
            *(event.n, event.event_hash, *place, job.tags, int(job.job_id in request.detached)),
        )
        for job, event in born
    ]
    batch.bear("insert_child", rows)
    batch.many("insert_event", [event for _job, event in born], request.fence)
    return False


def _known(batch: Writing, job_ids: Sequence[str]) -> set[str]:
    listed = msgspec.json.encode(job_ids).decode()
    return {job_id for (job_id,) in batch.rows("children_known", (listed,))}


def count_child(batch: Writing, job_id: str, home: tuple[str, str], state: str) -> None:
    """Count a child that has ended, well or badly, and let the one that closes the group wake its parent."""
    batch.lock(home[0])
    for _guid, hit, mode in batch.rows("count_child", ending(f"child:{job_id}", home, state, batch.wall)):
        if closes(hit, mode, state):
            wake_parent(batch, home)


def ending(guid: str, home: tuple[str, str], state: str, at: int) -> tuple[object, ...]:
    """Return the row of `count_child` for a child that has ended."""
    parent, step = home
    return (guid, parent, *group_of(step), state, int(state != JobState.SUCCEEDED), at)


def closes(hit: object, mode: str | None, state: str) -> bool:
    """Tell whether a counted child is the one that its parent waits for: the last, or the first to fail."""
    return bool(hit) or (mode == FAIL_FAST and state != JobState.SUCCEEDED)


def wake_parent(batch: Writing, home: tuple[str, str]) -> None:
    """Leave the word that a group is closed, once, and make its parent due."""
    parent, step = home
    group = group_of(step)
    batch.run("insert_message", (f"join:{parent}:{step}", parent, *group, "resume", None, None, batch.wall))
    batch.run("wake", (parent, batch.wall, group.name, "group"))


@lru_cache(maxsize=256)
def group_of(step: str) -> Group:
    """Return the group that children name as their place; all children of one name the same."""
    return Group.parse(step)
