"""Forking: a new job that begins with copies of what another has recorded.

The copies are facts of the new job's own chain. Each names the row that it was copied from, and the first
fact names the hash of the last one, so the new chain hangs on the old one.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

import msgspec

from tallystick.core.audit.fingerprints import BORN, of_birth, of_group
from tallystick.core.chain import Chain, event_hash, step_payload
from tallystick.core.effects.fresh_keys import with_fresh_keys
from tallystick.core.json_forms.canonical import CANON_VERSION
from tallystick.core.ledger.marks import OPENED
from tallystick.core.lifecycles import JobState
from tallystick.core.pictures import Now
from tallystick.core.remote.plans import InsertAnswer
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.verbs import asking
from tallystick.core.verbs.forking import Forking, decide_fork, kept_before
from tallystick.core.verbs.protocol.forking import fork
from tallystick.errors import IdempotencyConflict, InvariantBroken, KeyMoved, NoSuchStep, NotFailed, NotFound
from tallystick.store.api import Fact, Fence, Forked, ForkJob, NewJob, StoredEvent
from tallystick.store.refusals import Refused, stale
from tallystick.store.sql.protocol_pictures import READS, pictures_of
from tallystick.store.sql.reads import listed
from tallystick.store.writing import OpenTransaction, insist


class _RecordedStep(NamedTuple):
    """A recorded step of the job that is forked."""

    n: int
    kind: str
    name: str
    occurrence: int
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    event_hash: bytes
    # Of a group.
    threshold: int | None
    mode: str | None


class _Copy(NamedTuple):
    """The place of a copied record in the new chain, as `copy_steps` reads it."""

    name: str
    occurrence: int
    n: int
    prev_hash: str
    event_hash: str


def fork_job(batch: OpenTransaction, request: ForkJob) -> Forked:
    """Insert the new job with its copies, or return the one that a retry made before."""
    batch.lock(request.job_id)
    found = batch.rows("forkable", (request.job_id,))
    if not found:
        raise NotFound(f"there is no job {request.job_id}", job_id=request.job_id)
    state, dimension, retried_as, *row = found[0]
    origin = NewJob._make(row)
    before = _reserved(batch, request)
    key = _key_of(origin)
    holder = _holder(batch, key) if request.retry and key is not None else None
    verdict = decide_fork(
        retry=request.retry,
        failed=state == JobState.FAILED_FINAL,
        retried=retried_as is not None,
        moved=holder not in (None, request.job_id),
        reserved=before[1] if before else None,
        asked=request.content_hash if request.id is not None else None,
    )
    match verdict:
        case Forking.MAKE:
            return _made(batch, request, origin, dimension, free=holder is None)
        case Forking.KNOWN:
            known = before[0] if before else str(retried_as)
            return Forked(known, created=False, copied=0)
        case Forking.CONFLICT:
            assert before is not None, "what conflicts was made before"
            raise _conflict(request, *before)
        case Forking.NOT_FAILED:
            raise _not_failed(request.job_id, state)
        case Forking.KEY_MOVED:
            raise _moved_on(request.job_id, key, holder)
    assert_never(verdict)


def _made(batch: OpenTransaction, request: ForkJob, origin: NewJob, dimension: int, *, free: bool) -> Forked:
    """Insert the new job; `free` says that no job has the key of the other."""
    newborn = _newborn(origin, request, batch.wall)
    if origin.kind == "protocol":
        copied = _fork_protocol(batch, request, newborn)
    else:
        kept = _kept(batch, request, dimension)
        events, copies = _facts(batch, request, dimension, kept, newborn)
        _insert(batch, request, dimension, events, copies, newborn.options)
        copied = len(kept)
    if request.key is not None:
        reserve = (request.job_id, request.new_id, request.key, request.content_hash)
        insist(batch, "reserve_fork", (*reserve, CANON_VERSION, batch.wall))
    if request.retry:
        take_place(batch, request, origin, free=free)
    return Forked(request.new_id, created=True, copied=copied)


def _fork_protocol(batch: OpenTransaction, request: ForkJob, newborn: NewJob) -> int:
    """Insert a protocol job that begins with a step of another; return how many steps it has copies of."""
    parts = (batch.rows(name, (listed([request.job_id]),)) for name in READS)
    picture = pictures_of(*parts)[request.job_id]
    key = (newborn.idempotency_key, newborn.idempotency_hash, newborn.canon_version)
    about = NewProtocolJob(newborn.request_type or "", newborn.schema_version or "", *key, request.job_id)
    names, at = (request.new_id, request.lease_id), request.point[0] if request.point else None
    plan = fork(picture, about, names, at, Now(batch.wall), retry=request.retry)
    batch.write_plan(plan, Chain(request.new_id))
    return sum(isinstance(write, InsertAnswer) for write in plan.writes)


def _newborn(origin: NewJob, request: ForkJob, wall: int) -> NewJob:
    """Return the new job as `insert_fork` writes it."""
    key: tuple[str | None, str | None, int | None] = (None, None, None)
    if request.retry:
        key = (origin.idempotency_key, origin.idempotency_hash, origin.canon_version)
    elif request.id is not None:
        key = (request.key, request.content_hash, CANON_VERSION)
    deadline_at = None if origin.deadline_at is None else wall + origin.deadline_at - origin.created_at
    return origin._replace(
        job_id=request.new_id,
        version=origin.version if request.version is None else request.version,
        options=with_fresh_keys(origin.options, fresh=request.fresh_keys),
        ready_at=wall,
        deadline_at=deadline_at,
        created_at=wall,
        idempotency_key=key[0],
        idempotency_hash=key[1],
        canon_version=key[2],
        parent_job_id=None,
        detached=0,
    )


def _kept(batch: OpenTransaction, request: ForkJob, dimension: int) -> list[_RecordedStep]:
    """Return the records before the point, in their order."""
    records = [_RecordedStep._make(row) for row in batch.rows("recorded", (request.job_id, dimension))]
    if request.point is None:
        return records
    ends = [record.n for record in records if (record.name, record.occurrence) == request.point]
    if not ends and not batch.rows("open_wait", (request.job_id, dimension, *request.point)):
        name, occurrence = request.point
        known = ", ".join(f"{record.name}#{record.occurrence}" for record in records[-10:]) or "nothing"
        raise NoSuchStep(
            f"job {request.job_id} has no step {name[:100]}#{occurrence}; its last records: {known}",
            job_id=request.job_id,
            step=f"{name}#{occurrence}",
        )
    return records[: kept_before([record.n for record in records], ends[0] if ends else None)]


def _facts(
    batch: OpenTransaction, request: ForkJob, dimension: int, kept: list[_RecordedStep], job: NewJob
) -> tuple[list[StoredEvent], list[_Copy]]:
    """Return the first facts of the new job, and the place in its chain of every copy."""
    chain, now = Chain(request.new_id), batch.wall
    last = kept[-1] if kept else None
    about = {
        "job": "QUEUED",
        "fork_of": request.job_id,
        "dimension": dimension,
        "at": "#".join(map(str, request.point)) if request.point else None,
        "retry": request.retry,
        "copied": len(kept),
        "origin_hash": last.event_hash.hex() if last else None,
        BORN: of_birth(job),
        **asking.by(request.by),
    }
    events = [batch.placed(Fact(chain, "fork", now, 0, msgspec.json.encode(about).decode()))]
    drawn: dict[str, object] = {}
    for (payload,) in batch.rows("drawn", (request.job_id, last.n if last else 0)):
        drawn.update(msgspec.json.decode(payload).get("notes", {}))
    if drawn:
        payload = msgspec.json.encode({"notes": drawn}).decode()
        events.append(batch.placed(Fact(chain, "note", now, 0, payload)))
    # No other process holds the end of this chain, so no place has to be given back if this is undone.
    head, after = chain.head, chain.head.hex()
    copies: list[_Copy] = []
    for n, one in enumerate(kept, start=chain.n + 1):
        also = of_group(one.threshold, one.mode) if one.kind == "group" else None
        told = (one.name, one.occurrence, one.state, one.ledger, one.result, one.error, one.notes, also)
        word = step_payload(*told)
        head = event_hash(head, request.new_id, n, one.kind, now, 0, word)
        before, after = after, head.hex()
        copies.append(_Copy(one.name, one.occurrence, n, before, after))
    return events, copies


def _insert(
    batch: OpenTransaction,
    request: ForkJob,
    dimension: int,
    events: list[StoredEvent],
    copies: list[_Copy],
    options: str,
) -> None:
    """Write the job, its facts and copies, and for a retry which job took the place of which."""
    fence = Fence(request.new_id, 0, "fork")
    n, event_hash = events[-1].n, events[-1].event_hash
    if copies:
        n, event_hash = copies[-1].n, bytes.fromhex(copies[-1].event_hash)
    key = (request.key, request.content_hash, CANON_VERSION) if request.id is not None else (None,) * 3
    retry = int(request.retry)
    row = (
        request.job_id,
        request.new_id,
        batch.wall,
        n,
        event_hash,
        request.version,
        retry,
        *key,
        OPENED,
        options,
    )
    # Where a job has tags the database writes more rows than this one.
    if not batch.changed("insert_fork", row):
        raise Refused(stale(fence))
    batch.many("insert_event", events, fence)
    listed = msgspec.json.encode(copies).decode()
    places = (request.new_id, request.job_id, dimension, listed, batch.wall)
    if batch.changed("copy_steps", places) != len(copies):
        raise InvariantBroken(f"the records of job {request.job_id} could not be copied one by one")


def _reserved(batch: OpenTransaction, request: ForkJob) -> tuple[str, str] | None:
    """Return the fork that was made under this id, and what it asked for, if there is one.

    The row of the job that is forked is held, so that no other process reserves ids of its forks.
    """
    found = [] if request.key is None else batch.rows("forked_before", (request.job_id, request.key))
    return (str(found[0][0]), str(found[0][1])) if found else None


def _not_failed(job_id: str, state: str) -> NotFailed:
    return NotFailed(
        f"job {job_id} is {state}; only a job that has failed can be retried, any other can be forked",
        job_id=job_id,
        state=state,
    )


def _conflict(request: ForkJob, known: str, content: str) -> IdempotencyConflict:
    return IdempotencyConflict(
        f"the id {request.id!r} was used for another fork of job {request.job_id}: job {known} "
        f"({content[:12]}…, now {request.content_hash[:12]}…); use another id",
        key=str(request.id),
        job_id=known,
        existing_hash=content,
        submitted_hash=request.content_hash,
    )


def take_place(batch: OpenTransaction, request: ForkJob, origin: NewJob, *, free: bool) -> None:
    """Let the job that failed know which job took its place, and give that one the key.

    The key is free if another job had it since, and was removed with its history.
    """
    places, key = (request.job_id, request.new_id), _key_of(origin)
    batch.many("mark_retried", [places], Fence(request.new_id, 0, "fork"))
    if key is None:
        return
    if free:
        about = (origin.idempotency_hash, origin.canon_version, request.new_id, batch.wall)
        insist(batch, "reserve_key", (*key, *about))
    else:
        insist(batch, "move_reservation", places)


def _key_of(job: NewJob) -> tuple[str, str, str] | None:
    """Return tenant, scope and value of the key of a job, None if it has none."""
    if job.idempotency_key is not None:
        return job.tenant_id, "key", job.idempotency_key
    return None if job.idempotency_hash is None else (job.tenant_id, "content", job.idempotency_hash)


def _holder(batch: OpenTransaction, key: tuple[str, str, str]) -> str | None:
    """Return the job that has a key. A job that is locked keeps its key: to take it, its row must be held."""
    found = batch.rows("key_holder", key)
    return str(found[0][0]) if found else None


def _moved_on(job_id: str, key: tuple[str, str, str] | None, holder: str | None) -> KeyMoved:
    assert key is not None
    scope = f"key {key[2]!r}" if key[1] == "key" else "key, which is its arguments,"
    return KeyMoved(
        f"job {job_id} cannot be retried: its {scope} belongs to job {holder} by now, which was submitted "
        "after it had ended. Retry that one if it has failed too, or fork this one to run it without the key",
        job_id=job_id,
        key=key[2],
        holder=holder,
    )
