"""Keys that end with their job, on SQL stores: taken from a job that has ended, or with other arguments."""

from __future__ import annotations

from typing import assert_never

from tallystick.core.chain import Chain
from tallystick.core.queues.reusing import REPLACE, Keyed, KeyHolder, TakeKey, decide_key, due_at, replacement
from tallystick.errors import IdempotencyConflict, InvariantBroken, KeyInUse
from tallystick.store.api import Existing, Fact, Fence
from tallystick.store.refusals import Refused
from tallystick.store.writing import OpenTransaction, insist


def take_key(batch: OpenTransaction, request: TakeKey) -> Existing | None:
    """Reserve the key for a new job, or return the job that has it, perhaps with these arguments now.

    Between the look at the key and the lock of the job that has it, the key may go to another job. Then the
    look is made again: a job that took it has ended since, so it cannot go on like this for ever. What
    is decided under the lock stays true until it is written.
    """
    tenant_id, scope, value, content_hash, canon_version = request.reservation
    key = (tenant_id, scope, value)
    own = (content_hash, canon_version, request.job_id, request.created_at)
    missed = ""
    while True:
        found = batch.rows("key_holder", key)
        if not found:
            if batch.changed("reserve_key", (*key, *own)):
                return None
            continue
        job_id, reserved_at = found[0]
        # The job first, as everywhere; what was seen of its key before may have changed until then.
        batch.lock(job_id)
        rows = batch.rows("held_key", (*key, job_id))
        if not rows:
            if job_id == missed:
                raise InvariantBroken(f"the key {value} belongs to job {job_id}, which is not in the store")
            missed = job_id
            continue
        *row, ready_at, head_n, head_hash = rows[0]
        holder = KeyHolder._make(row)
        verdict = decide_key(request.rule, request.handler, holder)
        match verdict:
            case Keyed.TAKE:
                insist(batch, "take_key", (*key, job_id, *own))
                return None
            case Keyed.KEEP:
                return Existing(job_id, holder.content_hash, reserved_at)
            case Keyed.REPLACE:
                _replace(batch, request, holder, ready_at, Chain(job_id, head_n, head_hash))
                return Existing(job_id, content_hash, reserved_at)
            case Keyed.REFUSE | Keyed.CONFLICT:
                raise Refused((_in_use if verdict is Keyed.REFUSE else _of_another)(request, holder))
            case _ as never:
                assert_never(never)


def _replace(
    batch: OpenTransaction, request: TakeKey, holder: KeyHolder, ready_at: int | None, chain: Chain
) -> None:
    """Give a job that was never claimed other arguments, with a fact that tells of both."""
    tenant_id, scope, value, content_hash, canon_version = request.reservation
    due = due_at(request.rule, holder, ready_at, batch.wall)
    due_in = None if due is None else due - batch.wall
    said = replacement(holder, request.payload, content_hash, due_in)
    event = batch.placed(Fact(chain, REPLACE, batch.wall, 0, said))
    about = (request.payload, content_hash, canon_version, due, event.n, event.event_hash, batch.wall)
    insist(batch, "replace_arguments", (holder.job_id, holder.content_hash, *about))
    batch.many("insert_event", [event], Fence(holder.job_id, 0, REPLACE))
    insist(batch, "move_hash", (tenant_id, scope, value, holder.job_id, content_hash, canon_version))


def _in_use(request: TakeKey, holder: KeyHolder) -> KeyInUse:
    key = request.reservation.value
    return KeyInUse(
        f"job {holder.job_id} has the key {key!r} and is {holder.state}: its arguments can be replaced only "
        "before it is claimed",
        key=key,
        job_id=holder.job_id,
        state=holder.state,
    )


def _of_another(request: TakeKey, holder: KeyHolder) -> IdempotencyConflict:
    key, submitted_hash = request.reservation.value, request.reservation.content_hash
    return IdempotencyConflict(
        f"the key {key!r} was used for job {holder.job_id} of the workflow {holder.handler}, and a key "
        f"belongs to one workflow: for {request.handler} use another key",
        key=key,
        job_id=holder.job_id,
        workflow=holder.handler,
        submitted_workflow=request.handler,
        existing_hash=holder.content_hash,
        submitted_hash=submitted_hash,
    )
