"""The ends of plain jobs, in lists: nothing was ever open but their start, so their digits are known.

Those that are children are counted by the rule that counts every child, from one look at each group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.core.deciding import see
from tallystick.core.ledger.marks import STARTED, settled
from tallystick.core.pictures import Now
from tallystick.core.plans import Write
from tallystick.core.verbs.children import child_ended
from tallystick.store.api import EndJob
from tallystick.store.sqlite.applying import apply
from tallystick.store.sqlite.looking import look_at_parents
from tallystick.store.sqlite.statements import sql

if TYPE_CHECKING:
    from tallystick.store.sqlite.writer import SqliteBatch

_ROOT, _START = settled(STARTED.activity, STARTED.guid, closes=True)
_DIGITS: Final = (STARTED.activity, _ROOT, STARTED.guid, _START)


def end_plain_jobs(batch: SqliteBatch, requests: list[EndJob]) -> None:
    """Close jobs whose start is the closer, all of them or none."""
    fence, events = requests[0].fence, [batch.placed(request.fact) for request in requests]
    batch.many("end_attempts", [batch.ending(r, r.attempt_status) for r in requests], fence)
    ended = [
        (
            *(r.fence.job_id, r.fence.attempt, r.state, r.result, r.error, r.error_code, r.error_message),
            *(event.n, event.event_hash, batch.wall, *_DIGITS),
        )
        for r, event in zip(requests, events, strict=True)
    ]
    # A signal that no wait took ends with its job; mostly no job has one.
    if batch.rows("any_unread", ()):
        unread = [(r.fence.job_id, "", "", batch.wall, True) for r in requests]
        batch.cursor.executemany(sql("drop_inboxes"), unread)
    _count_children(batch, requests)
    batch.many("end_jobs", ended, fence)
    batch.many("insert_event", events, fence)


def _count_children(batch: SqliteBatch, requests: list[EndJob]) -> None:
    """Count those that are children, in their order; a group is looked at once."""
    homes = dict.fromkeys(request.parent for request in requests if request.parent is not None)
    if not homes:
        return
    pictures, now = look_at_parents(batch, homes), Now(batch.wall)
    writes: list[Write] = []
    for request in requests:
        if request.parent is not None:
            ended = child_ended(pictures, request.fence.job_id, request.parent, request.state, now)
            see(pictures, ended)
            writes += ended
    apply(batch, writes)
