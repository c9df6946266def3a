"""A command becomes a job: the reservation first, then when to look, then the truth, then its tail.

A process that finds a reservation without a job makes that job in the name of the first one. A submission
that was left before its truth is closed by the sweep after ten minutes, and the next one begins anew.
"""

from __future__ import annotations

from tallystick.core.audit.book import Kept
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import (
    Hearing,
    InsertOutbox,
    InsertProtocolJob,
    ProtocolPlan,
)
from tallystick.core.remote.requests import SubmitCommand
from tallystick.core.verbs.protocol.submitting import submit as decide_submit
from tallystick.errors import StoreBusy
from tallystick.store.api import Existing
from tallystick.store.azure import keys
from tallystick.store.azure.changing import AGAIN_MAX, Here, applied, write_truth
from tallystick.store.azure.entities import check_births, packed, read_as
from tallystick.store.azure.heads import (
    ABANDONED,
    Head,
    Seen,
    head_values,
    step_values,
)
from tallystick.store.azure.requests import Asking, Put, ServiceRefusal, get, write
from tallystick.store.azure.tail import finish, load, mend


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
        kept = read_as(Kept, row.values)
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
    reply, made = yield from write_truth(born, born.steps)
    if not isinstance(reply, ServiceRefusal):
        return plan.hearing, (yield from finish(made))
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
    row = next(write.row for write in plan.writes if isinstance(write, InsertOutbox))
    nothing = Head(job, about, 0, keys.month_of(now), now, now, 0, "", "", "", "")
    return applied(Seen(nothing, ()), plan, now, here.token), plan, row.payload
