"""A command becomes a job: the reservation first, then when to look, then the truth, then its tail.

A process that finds a reservation without a job makes that job in the name of the first one. A submission
that was left before its truth is closed by the sweep after ten minutes, and the next one begins anew.
"""

from __future__ import annotations

from typing import Final

from tallystick.core.audit.book import Kept
from tallystick.core.chain import Chain
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import (
    Hearing,
    InsertOutbox,
    InsertProtocolJob,
    InsertProtocolStep,
    ProtocolPlan,
)
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.remote.rows import ProtocolPicture
from tallystick.core.verbs.protocol.submitting import submit as decide_submit
from tallystick.errors import InvariantBroken, StoreBusy
from tallystick.store.api import Existing
from tallystick.store.azure import keys
from tallystick.store.azure.changing import AGAIN_MAX, Here
from tallystick.store.azure.entities import check_births, packed
from tallystick.store.azure.heads import (
    ABANDONED,
    Head,
    HeadRedo,
    KeptStep,
    Seen,
    fact_of,
    head_values,
    read_kept,
    reader_of,
    step_values,
    wake,
)
from tallystick.store.azure.requests import Asking, Put, ServiceRefusal, Together, get, write
from tallystick.store.azure.tail import finish, load, mend

LOOK_MS: Final = 30_000
"""After how long a sweep looks at a new job for the first time, at the latest."""


def submit(command: SubmitCommand, here: Here) -> Asking[tuple[Hearing | Existing, Seen | None]]:
    """Make a job of a command, unless it was made before; return it as it was left too."""
    born, plan, directive = _born(command, here)
    steps = tuple(map(step_values, born.steps))
    check_births("command", [head_values(born.head), *steps], [directive])
    found = yield from _reserve(command, born.head.created_at)
    if found is None:
        return (yield from _make(born, plan, here))
    seen = yield from load(found.job_id)
    if seen is not None:
        yield from finish(seen)
    elif found.content_hash == command.reservation.content_hash:
        # Reserved, and not made: who was first has stopped, or is about to make it too.
        born, plan, _directive = _born(_under(command, found.job_id), here)
        born = born._replace(head=born.head._replace(created_at=found.created_at))
        yield from _make(born, plan, here)
    return found, None


def _under(command: SubmitCommand, job_id: str) -> SubmitCommand:
    """Return a command under the name that was reserved first; its directive is left to any relay."""
    steps = tuple(step._replace(job_id=job_id) for step in command.steps)
    return command._replace(job=command.job._replace(job_id=job_id), steps=steps, relays=False)


def _reserve(command: SubmitCommand, created_at: int) -> Asking[Existing | None]:
    """Take the reservation; return who has it if that is another."""
    tenant_id, scope, value, content_hash, canon_version = command.reservation
    place = keys.reservation_place(tenant_id, scope, value)
    mine = Kept(tenant_id, scope, value, command.job_id, content_hash, canon_version, created_at)
    etag: str | None = None
    for _time in range(AGAIN_MAX):
        reply = yield from write(Put(keys.IDEMPOTENCY, *place, packed(mine._asdict()), etag))
        if not isinstance(reply, ServiceRefusal):
            return None
        row = yield from get(keys.IDEMPOTENCY, *place)
        etag = None
        if row is None:
            continue
        kept = read_kept(row)
        if kept.job_id == command.job_id:
            return None  # the answer to our write was lost
        head = yield from get(keys.STEPS, keys.encoded(kept.job_id), keys.HEAD)
        if head is None or head.values["state"] != ABANDONED:
            return Existing(kept.job_id, kept.content_hash, kept.created_at)
        etag = row.etag  # that submission was left: the place is ours if no other takes it
    raise StoreBusy(f"a reservation of {tenant_id} was changed {AGAIN_MAX} times meanwhile")


def _make(born: Seen, plan: ProtocolPlan, here: Here) -> Asking[tuple[Hearing | Existing, Seen | None]]:
    """Write a job: first when to look at it, so that nothing of it is ever forgotten."""
    head = born.head
    yield from mend(head)
    partition = keys.encoded(head.job.job_id)
    rows = [Put(keys.STEPS, partition, keys.HEAD, head_values(head))]
    rows += [
        Put(keys.STEPS, partition, keys.step_row(kept.step.step_index, kept.step.step_id), step_values(kept))
        for kept in born.steps
    ]
    reply = yield from write(Together(tuple(rows)))
    if not isinstance(reply, ServiceRefusal):
        of_head, *of_steps = reply.etags
        steps = tuple(kept._replace(etag=etag) for kept, etag in zip(born.steps, of_steps, strict=True))
        seen = yield from finish(born._replace(etag=of_head, steps=steps))
        return plan.hearing, seen
    found = yield from load(head.job.job_id)
    if found is None:
        raise StoreBusy(
            "this submission was held up for so long that it was given up; nothing was made: send it again",
            job_id=head.job.job_id,
        )
    found, mine = (yield from finish(found)), found.head.by == here.token
    if mine:
        return plan.hearing, found  # the answer to our write was lost
    return Existing(head.job.job_id, head.about.idempotency_hash or "", found.head.created_at), None


def _born(command: SubmitCommand, here: Here) -> tuple[Seen, ProtocolPlan, str]:
    """Return a job as it is to be written, what was decided, and its first directive."""
    now = here.now()
    plan = decide_submit(command, Now(now))
    job, about = next(write for write in plan.writes if isinstance(write, InsertProtocolJob))
    steps = [write.step for write in plan.writes if isinstance(write, InsertProtocolStep)]
    row = next(write.row for write in plan.writes if isinstance(write, InsertOutbox))
    picture = ProtocolPicture(job, tuple(steps), row)
    at = wake(picture)
    if plan.told is None or at is None:
        raise InvariantBroken(f"job {job.job_id} is born without a fact, or nothing is ever due")
    told, chain = plan.told, Chain(job.job_id)
    link = chain.extend(told.kind, now, told.attempt, told.payload)
    bare = row._replace(payload="")
    redo = HeadRedo(made=bare, fact=fact_of(job.job_id, link, told.kind, now, told.attempt, told.payload))
    if row.is_pulled:
        redo.ready = keys.ready_place(row)
    head = Head(
        job, about, 1, keys.month_of(now), now, now, chain.n, chain.head.hex(),
        keys.due_row(min(at, now + LOOK_MS), job.job_id, 1), reader_of(picture, None, ""), here.token,
        pending=bare, redo=redo,
    )  # fmt: skip
    return Seen(head, tuple(KeptStep(step, now, now) for step in steps)), plan, row.payload
