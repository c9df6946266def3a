"""The tail of a change: what follows its truth, in an order in which any crash can be mended.

Outbox, then what remote workers may ask for, then the fact, then when to look again, then what they may no
longer ask for, and last the copy of the job. The copy is the watermark: once it has the version of the head,
all before it is there. Each write may be made again by any process, and by one that was asleep meanwhile.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.remote.rows import OutboxRow
from tallystick.errors import InvariantBroken
from tallystick.store.azure import keys
from tallystick.store.azure.entities import packed
from tallystick.store.azure.heads import (
    Head,
    Seen,
    copy_values,
    fact_values,
    outbox_values,
    read_job,
    whole_directive,
)
from tallystick.store.azure.requests import (
    Asking,
    Drop,
    Find,
    Put,
    ServiceRefusal,
    Together,
    find,
    get,
    write,
)

_MOVED: Final = ("state", "tries", "next_try_at", "sent_at", "rev", "taken_by", "reason")
"""What of a directive changes after it was made: each from nothing to something, or up."""


def truth(job_id: str) -> Asking[Seen | None]:
    """Read a job with its steps, without its copy."""
    return read_job((yield from find(Find(keys.STEPS, keys.encoded(job_id)))))


def load(job_id: str) -> Asking[Seen | None]:
    """Read a job and its copy."""
    seen = yield from truth(job_id)
    if seen is None:
        return None
    copy = yield from get(keys.JOBS, seen.head.partition, keys.encoded(job_id))
    return seen if copy is None else seen._replace(copy_n=_version(copy.values["n"]), copy_etag=copy.etag)


def finish(seen: Seen) -> Asking[Seen]:
    """Write what is missing of a job's newest version, if anything is."""
    if seen.copy_n >= seen.head.n:
        return seen
    seen = yield from _outbox(seen)
    head, job_id = seen.head, seen.head.job.job_id
    if head.redo.ready is not None:
        about = packed({"tenant_id": head.job.tenant_id, "job_id": job_id})
        yield from _insert(Put(keys.READY, *head.redo.ready, about))
    if head.redo.fact is not None:
        fact = fact_values(head.redo.fact)
        yield from _insert(Put(keys.EVENTS, keys.encoded(job_id), keys.event_row(head.facts), fact))
    if head.former is not None:
        yield from _move_due(head, head.former)
    elif head.redo.mends:
        yield from mend(head)
    if head.redo.gone is not None:  # while it is there, a remote worker that asks comes to this job
        yield from write(Drop(keys.READY, *head.redo.gone))
    seen = yield from _copy(seen)
    if head.is_final:
        yield from write(Drop(keys.DUE, keys.due_partition(job_id), head.armed))
    return seen


def _insert(put: Put) -> Asking[None]:
    """Insert a row that any process may have inserted before."""
    reply = yield from write(put)
    if reply is not ServiceRefusal.EXISTS and isinstance(reply, ServiceRefusal):
        raise InvariantBroken(f"the service refuses a new row in {put.table}: {reply.value}")


def due_put(head: Head) -> Put:
    """Return the insert of the row that says when to look at a job."""
    job = head.job
    about = {"job_id": job.job_id, "tenant_id": job.tenant_id, "month": head.month}
    told = packed({**about, "reader": head.reader, "look_at": ""})
    return Put(keys.DUE, keys.due_partition(job.job_id), head.armed, told)


def _move_due(head: Head, former: str) -> Asking[None]:
    """Exchange the row that says when to look: both or none, so that a process which slept changes nothing.

    If there is no row to delete, such a process is late, or the row was lost: then the new one is written.
    """
    put = due_put(head)
    reply = yield from write(Together((put, Drop(put.table, put.pk, former))))
    if reply is ServiceRefusal.MISSING:
        now = yield from get(keys.STEPS, keys.encoded(head.job.job_id), keys.HEAD)
        if now is not None and _version(now.values["n"]) == head.n:
            yield from mend(head)


def mend(head: Head) -> Asking[None]:
    """Write the row that says when to look, unless it is there: one that was lost would never be missed."""
    yield from _insert(due_put(head))


def _outbox(seen: Seen) -> Asking[Seen]:
    """Bring the outbox to this version; a directive that is out or given up is never touched again."""
    head = seen.head
    if head.redo.moved is not None:
        yield from _move(seen, OutboxRow._make(head.redo.moved))
        seen = seen._replace(outbox_etag=None)
    if head.redo.made is not None:
        row = OutboxRow._make(head.redo.made)
        whole = whole_directive(head.job, tuple(kept.step for kept in seen.steps), row)
        assert whole is not None, "there is one"
        values = outbox_values(whole, head.updated_at)
        reply = yield from write(Put(keys.OUTBOX, *outbox_place(seen, row), values))
        seen = seen._replace(outbox_etag=None if isinstance(reply, ServiceRefusal) else reply.etags[0])
    return seen


def outbox_place(seen: Seen, row: OutboxRow) -> keys.Place:
    """Return where a directive of a job is."""
    index = seen.index_of(row.step_id)
    return seen.head.partition, keys.outbox_row(row.job_id, index, row.attempt_no)


def _move(seen: Seen, row: OutboxRow) -> Asking[None]:
    """Write how far a directive has come, unless that is known there, or more."""
    place, etag = outbox_place(seen, row), seen.outbox_etag
    changed = {name: getattr(row, name) for name in _MOVED}
    values = packed({**changed, "updated_at": seen.head.updated_at})
    while True:
        if etag is not None:
            reply = yield from write(Put(keys.OUTBOX, *place, values, etag, merge=True))
            if not isinstance(reply, ServiceRefusal):
                return
        found = yield from get(keys.OUTBOX, *place)
        if found is None or _version(found.values["rev"]) >= row.rev:
            return  # a row that was deleted is for `tally doctor`
        etag = found.etag


def _copy(seen: Seen) -> Asking[Seen]:
    """Write the copy of the job; that it has changed does not say that it is as new as this version."""
    head, etag = seen.head, seen.copy_etag
    place = (head.partition, keys.encoded(head.job.job_id))
    while True:
        reply = yield from write(Put(keys.JOBS, *place, copy_values(head), etag))
        if not isinstance(reply, ServiceRefusal):
            return seen._replace(copy_n=head.n, copy_etag=reply.etags[0])
        found = yield from get(keys.JOBS, *place)
        etag = None if found is None else found.etag
        if found is not None and _version(found.values["n"]) >= head.n:
            return seen._replace(copy_n=_version(found.values["n"]), copy_etag=etag)


def _version(value: object) -> int:
    assert isinstance(value, int), "versions are numbers"
    return value
