"""Changes an existing job: read, finish what was interrupted, decide, write the head, then what follows it.

The rules are those of every store (`core/verbs/protocol`): here is only where their plans are written. The
time is read before a decision, and the tags guard the write: what changed in between begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, assert_never

from tallystick.core.chain import Chain
from tallystick.core.lease import WORK_LEASE_MS
from tallystick.core.lifecycles import OutboxState
from tallystick.core.pictures import Message, Now
from tallystick.core.remote.plans import (
    Hearing,
    InsertAnswer,
    InsertOutbox,
    InsertProtocolJob,
    InsertProtocolStep,
    MoveOutbox,
    MoveProtocolJob,
    MoveProtocolStep,
    ProtocolPlan,
    stale_report,
)
from tallystick.core.remote.requests import ProtocolRequest, RenewStep
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.core.verbs.protocol.deciding import decide
from tallystick.errors import StoreBusy
from tallystick.store.azure import keys
from tallystick.store.azure.entities import packed
from tallystick.store.azure.heads import (
    Head,
    HeadRedo,
    KeptStep,
    Seen,
    head_values,
    reader_of,
    step_values,
    wake,
)
from tallystick.store.azure.requests import Asking, Put, ServiceRefusal, Together, Value, write
from tallystick.store.azure.tail import finish, load, mend, truth
from tallystick.store.sql.protocols import ABSENT

AGAIN_MAX: Final = 50
"""How often a change begins again because the job was changed meanwhile, before its sender is told."""

LOOK_MS: Final = WORK_LEASE_MS
"""After how long at the latest a sweep looks at a job that is open, whatever its lease: what a process that
died has left of a change waits for that look."""

FIRST_LOOK_MS: Final = 30_000
"""After how long a sweep looks at a new job for the first time, at the latest."""

ALONE_MS: Final = 1_000
"""After how long without a change the next one sees to it that the row which says when to look is there."""


def is_left_alone(head: Head, now: int) -> bool:
    """Tell whether a job goes on and was not changed for a while."""
    return not head.is_final and head.updated_at + ALONE_MS <= now


class Here(NamedTuple):
    """The time of this process, and what marks the writes of one request as its own."""

    now: Callable[[], int]
    token: str


class Changed(NamedTuple):
    """What a request came to, and the job as it was left, if no other process can have changed it since."""

    hearing: Hearing
    seen: Seen | None = None


def change(request: ProtocolRequest, here: Here, carried: Seen | None = None) -> Asking[Changed]:
    """Decide a request and write what it comes to; `carried` is the job as this process has left it."""
    seen, planned = carried, None
    for _time in range(AGAIN_MAX):
        if seen is None:
            seen = yield from load(request.job_id)
            if seen is None:
                return Changed(ABSENT)
            seen, mine = (yield from finish(seen)), seen.head.by == here.token
            if mine and planned is not None:
                return Changed(planned.hearing, seen)  # the answer to our write was lost
            carried = None
        now = here.now()
        plan = decide(seen.picture, request, Now(now))
        if not plan.writes:
            if carried is not None:
                seen, carried = None, None  # what changes nothing is answered from what is there now
                continue
            yield from _keep_refused(request, plan, now)
            if is_left_alone(seen.head, now):
                yield from mend(seen.head)
            return Changed(plan.hearing, seen)
        reply, seen = yield from _write(seen, plan, now, here.token)
        if not isinstance(reply, ServiceRefusal):
            return Changed(plan.hearing, (yield from finish(seen)))
        seen, carried, planned = None, None, plan
    raise StoreBusy(
        f"job {request.job_id}: others changed it {AGAIN_MAX} times meanwhile", job_id=request.job_id
    )


def renew(request: RenewStep, here: Here) -> Asking[Changed]:
    """Take a heartbeat: the row of the step alone, of a job that was read now; before any ACK it is one."""
    for _time in range(AGAIN_MAX):
        seen = yield from truth(request.job_id)
        if seen is None:
            return Changed(ABSENT)
        now = here.now()
        plan = decide(seen.picture, request, Now(now))
        if not plan.writes:
            yield from _keep_refused(request, plan, now)
            return Changed(plan.hearing)
        if plan.told is not None:
            return (yield from change(request, here))
        (moved,) = (write for write in plan.writes if isinstance(write, MoveProtocolStep))
        kept = seen.steps[moved.step.step_index]
        reply = yield from write(_step_put(kept._replace(step=moved.step, updated_at=now)))
        if not isinstance(reply, ServiceRefusal):
            return Changed(plan.hearing)
    raise StoreBusy(f"job {request.job_id}: its step was changed {AGAIN_MAX} times meanwhile")


def rearm(seen: Seen, here: Here) -> Asking[Seen | None]:
    """Note that a sweep must look at a job later than was noted; None if it was changed meanwhile."""
    reply, seen = yield from _write(seen, None, here.now(), here.token)
    return None if isinstance(reply, ServiceRefusal) else (yield from finish(seen))


def _keep_refused(request: ProtocolRequest, plan: ProtocolPlan, now: int) -> Asking[None]:
    """Keep a report for people that was refused, if it is one; said again it is the same row."""
    report = stale_report(request, plan.heard)
    if report is not None:
        job_id, attempt, lease_id, name = report
        row = keys.key(str(attempt), lease_id, name)
        about: dict[str, Value] = {
            "at": now,
            "job_id": job_id,
            "attempt": attempt,
            "lease_id": lease_id,
            "report": name,
        }
        yield from write(Put(keys.STALE, keys.encoded(job_id), row, packed(about)))


def _write(seen: Seen, plan: ProtocolPlan | None, now: int, token: str) -> Asking[tuple[object, Seen]]:
    """Write the truth of a plan, or only when to look again, and return the job with it."""
    after = applied(seen, plan, now, token)
    changed = [kept for kept, before in zip(after.steps, seen.steps, strict=True) if kept is not before]
    return (yield from write_truth(after, changed))


def write_truth(after: Seen, changed: Sequence[KeptStep]) -> Asking[tuple[object, Seen]]:
    """Write a job and some of its steps, all or none; return it with their tags. A row without one is new."""
    job_id = keys.encoded(after.head.job.job_id)
    head = Put(keys.STEPS, job_id, keys.HEAD, head_values(after.head), after.etag or None)
    reply = yield from write(Together((head, *map(_step_put, changed))))
    if isinstance(reply, ServiceRefusal):
        return reply, after
    of_head, *of_steps = reply.etags
    tags = dict(zip((kept.step.step_id for kept in changed), of_steps, strict=True))
    steps = tuple(kept._replace(etag=tags.get(kept.step.step_id, kept.etag)) for kept in after.steps)
    return reply, after._replace(etag=of_head, steps=steps)


def _step_put(kept: KeptStep) -> Put:
    step = kept.step
    row = keys.step_row(step.step_index, step.step_id)
    return Put(keys.STEPS, keys.encoded(step.job_id), row, step_values(kept), kept.etag or None)


def applied(seen: Seen, plan: ProtocolPlan | None, now: int, token: str) -> Seen:
    """Return a job as a plan makes it, or changes it, with what its tail is to write."""
    head, steps, redo = seen.head, list(seen.steps), HeadRedo()
    job, pending, message, taken_by = head.job, head.pending, head.message, None
    for each in () if plan is None else plan.writes:
        match each:
            case MoveProtocolJob() | InsertProtocolJob():
                job = each.job
            case InsertProtocolStep():
                steps.append(KeptStep(each.step, now, now))
            case MoveProtocolStep():
                at = each.step.step_index
                steps[at] = steps[at]._replace(step=each.step, updated_at=now)
            case MoveOutbox():
                pending, taken_by = each.row._replace(payload=""), each.row.taken_by
                redo.moved, redo.gone = pending, _ready(pending)
            case InsertOutbox():
                pending = each.row._replace(payload="")
                redo.made, redo.ready = pending, _ready(pending)
            case InsertAnswer():
                message = _put_message(steps, each.message, message)
            case _:
                assert_never(each)
    if pending is not None and pending.state != OutboxState.PENDING:
        pending = None
    facts, chain = head.facts, head.chain
    if plan is not None and plan.told is not None:
        told, end = plan.told, Chain(job.job_id, facts, bytes.fromhex(chain))
        link = end.extend(told.kind, now, told.attempt, told.payload)
        hashes = (link.prev_hash.hex(), link.event_hash.hex())
        redo.fact = (job.job_id, link.n, told.kind, now, told.attempt, told.payload, *hashes)
        facts, chain = end.n, end.head.hex()
    after = head._replace(
        job=job, n=head.n + 1, updated_at=now, facts=facts, chain=chain, by=token, former=None,
        pending=pending, message=message, redo=redo,
    )  # fmt: skip
    picture = ProtocolPicture(job, tuple(kept.step for kept in steps), pending)
    reader = reader_of(picture, taken_by, head.reader)
    is_for_others = taken_by is not None or reader not in ("", head.reader)
    after = _armed(after, picture, reader, now, is_for_others=is_for_others)
    redo.mends = after.former is None and not after.is_final and is_left_alone(head, now)
    return seen._replace(head=after, steps=tuple(steps))


def _put_message(steps: list[KeptStep], message: Message, of_job: Message | None) -> Message | None:
    """Keep the message that has ended a step in the row of the step, and that of the job in its own."""
    for at, kept in enumerate(steps):
        if message.kind == "result" and kept.step.step_id == message.name:
            steps[at] = kept._replace(message=message)
            return of_job
    return message


def _ready(row: OutboxRow) -> keys.Place | None:
    """Return where it is noted that remote workers may ask for a directive, if they may."""
    return keys.ready_place(row) if row.is_pulled else None


def _armed(head: Head, picture: ProtocolPicture, reader: str, now: int, *, is_for_others: bool) -> Head:
    """Move the row that says when to look: to an earlier instant, if its own has come, or to others.

    A row is never used twice: its key has the version that wanted it.
    """
    at = wake(picture)
    if at is None:
        return head
    if not head.armed:
        first = keys.due_row(min(at, now + FIRST_LOOK_MS), head.job.job_id, head.n)
        return head._replace(armed=first, reader=reader)
    at, noted = min(at, now + LOOK_MS), keys.due_instant(head.armed)
    if at < noted or noted <= now < at or is_for_others:
        armed = keys.due_row(at, head.job.job_id, head.n)
        return head._replace(armed=armed, former=head.armed, reader=reader)
    return head
