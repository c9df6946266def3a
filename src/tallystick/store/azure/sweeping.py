"""Looking at jobs when it is time: each row that says so is followed to its job, and the job decides.

A row is a hint, never the reason: the job is read after it. What is behind is finished, a row without
a use is deleted, one that came too early is written again for later; what is left is due.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.lifecycles import JobState, StepState
from tallystick.core.remote.rows import ProtocolPicture
from tallystick.store.azure import keys
from tallystick.store.azure.changing import Here, rearm
from tallystick.store.azure.entities import packed
from tallystick.store.azure.heads import ABANDONED, Seen, wake
from tallystick.store.azure.requests import Asking, Drop, Find, Put, Row, ServiceRefusal, find, get, write
from tallystick.store.azure.tail import finish, load

ABANDON_MS: Final = 600_000
"""After how long the sweep closes a submission that has no job."""


def come(partition: str, now: int, limit: int) -> Find:
    """Return the request for the rows of a partition whose instant has come, the earliest first."""
    return Find(keys.DUE, partition, below=keys.instant_text(now + 1), limit=limit)


def look(row: Row, here: Here) -> Asking[Seen | None]:
    """Look at the job of a row that has come; return it if something is due."""
    job_id = str(row.values["job_id"])
    seen = yield from load(job_id)
    if seen is None:
        yield from _close_left(row, job_id, here)
        return None
    seen = yield from finish(seen)
    if seen.head.is_final or seen.head.armed != row.rk:
        yield from write(Drop(keys.DUE, row.pk, row.rk))
        return None
    at = wake(seen.picture)
    if at is not None and at <= here.now():
        return seen
    yield from rearm(seen, here)
    return None


def _close_left(row: Row, job_id: str, here: Here) -> Asking[None]:
    """Close a submission that has no job, once no process can be at it any more: then its row may go."""
    head = yield from get(keys.STEPS, keys.encoded(job_id), keys.HEAD)
    if head is None:
        if here.now() < keys.due_instant(row.rk) + ABANDON_MS:
            return
        left = packed({"state": ABANDONED, "at": here.now()})
        reply = yield from write(Put(keys.STEPS, keys.encoded(job_id), keys.HEAD, left))
        if isinstance(reply, ServiceRefusal):
            return  # it was made after all; the next look sees it
    elif head.values["state"] != ABANDONED:
        return
    yield from write(Drop(keys.DUE, row.pk, row.rk))


def is_due_step(picture: ProtocolPicture, now: int) -> bool:
    """Tell whether the sweep has to act on the active step; what a relay has to publish is the relay's."""
    step, row = picture.active, picture.pending
    if step is None or not step.is_due(now):
        return False
    cancelling = picture.job.state == JobState.CANCELLING
    return step.state != StepState.DISPATCHING or cancelling or (row is not None and row.is_pulled)


def asked(service: str, tenant_id: str | None, limit: int) -> Asking[list[Row]]:
    """Return what is noted as ready for a service, the oldest of every lane."""
    where = () if tenant_id is None else (("tenant_id", tenant_id),)
    lane = f"{keys.encoded(service)}{keys.JOIN}"
    behind, rows = f"{lane}{keys.JOIN}", list[Row]()
    while True:
        page = yield from find(Find(keys.READY, lane, limit=limit, where=where, pk_below=behind))
        rows += page
        if len(page) < limit:
            return rows
        # One lane that is full keeps no other from being seen: no key is between these two.
        lane = f"{page[-1].pk} "
