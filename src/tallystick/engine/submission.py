"""Submitting: makes a job of a handler and its arguments, once per idempotency key."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tallystick.core.audit.fingerprints import birth_text
from tallystick.core.chain import Chain
from tallystick.core.json_forms.canonical import CANON_VERSION, idempotency_hash
from tallystick.core.limits import (
    FLUSH_BUNDLES_MAX,
    PAYLOAD_BYTES_MAX,
    PRIORITY_BEST,
    PRIORITY_WORST,
    TAGS_MAX,
    check_key,
    check_name,
    check_text,
)
from tallystick.core.queues.reusing import REUSE, KeyRule, TakeKey
from tallystick.core.verbs.claiming import CLAIMED_FIRST, claim_text
from tallystick.defaults import ATTEMPTS, PRIORITY, QUEUE, TENANT
from tallystick.errors import BadInput, IdempotencyConflict
from tallystick.store.api import (
    Bundle,
    ClaimedJob,
    Existing,
    Fact,
    Fence,
    NewJob,
    NewLease,
    Reservation,
    SubmitJob,
    SubmitJobs,
)


class Submission(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a caller wants done, checked, before it is a job."""

    handler: str
    payload: str
    version: str = ""
    tenant_id: str = TENANT
    queue: str = QUEUE
    priority: int = PRIORITY
    delay_ms: int = 0
    deadline_ms: int | None = None
    attempts_max: int = ATTEMPTS
    idempotency_key: str | None = None
    by_content: bool = False
    tags: tuple[str, ...] = ()
    detached: bool = False
    hooks: str | None = None
    traceparent: str | None = None
    limit_key: str | None = None
    # When a key that another job has is taken from it, or its arguments are replaced.
    rule: KeyRule | None = None

    def __post_init__(self) -> None:
        check_text("payload", self.payload, PAYLOAD_BYTES_MAX)
        check_name("queue", self.queue)
        check_name("tenant", self.tenant_id)
        if len(self.tags) > TAGS_MAX:
            raise BadInput(f"a job has at most {TAGS_MAX} tags, not {len(self.tags)}")
        for tag in self.tags:
            check_key("tag", tag)
        if self.idempotency_key is not None:
            check_key("idempotency key", self.idempotency_key)
        if self.limit_key is not None:
            check_key("limit key", self.limit_key)
        if not PRIORITY_BEST <= self.priority <= PRIORITY_WORST:
            raise BadInput(
                f"priority must be {PRIORITY_BEST} (first) to {PRIORITY_WORST} (last), not {self.priority}"
            )

    @property
    def reserved(self) -> bool:
        """Tell whether the same submission again is the same job."""
        return self.idempotency_key is not None or self.by_content


def submit_job(
    submission: Submission, job_id: str, now: int, lease: NewLease | None = None, *, parent: str | None = None
) -> SubmitJob:
    """Return the primitive that makes this submission a job, claimed at once when a lease is given.

    With a parent it is detached: the job that started it is known, and that is all.
    """
    job = new_job(submission, job_id, now, parent, detached=parent is not None)
    chain = Chain(job_id)
    facts: tuple[Fact, ...] = (Fact(chain, "submit", now, 0, birth_text(job)),)
    if lease is not None:
        said = claim_text(CLAIMED_FIRST, lease.lease_id, lease.owner, at_birth=True)
        facts += (Fact(chain, "claim", now, 1, said),)
    return SubmitJob(job, facts, _reservation(submission, job.idempotency_hash), lease)


def bundle_of(submission: Submission, primitive: SubmitJob) -> Bundle:
    """Return the bundle of a submission; under a rule about its key, what takes the key goes first."""
    if submission.rule is None or primitive.reservation is None:
        return (primitive,)
    job, rule = primitive.job, submission.rule
    key = TakeKey(primitive.reservation, job.job_id, job.created_at, job.payload, rule, job.handler)
    return (key, primitive._replace(reservation=None))


def new_job(
    submission: Submission, job_id: str, now: int, parent: str | None = None, *, detached: bool = False
) -> NewJob:
    """Return the row that a submission decides."""
    reserved = submission.reserved
    # By place: that is twice as fast as by name, and the most that a submission costs here.
    return NewJob(
        job_id,
        submission.payload,
        now + submission.delay_ms,
        None if submission.deadline_ms is None else now + submission.deadline_ms,
        now,
        submission.tenant_id,
        "workflow",
        submission.handler,
        submission.version,
        submission.queue,
        submission.priority,
        _options(submission),
        submission.handler,
        None,
        None,
        (submission.version or None) if reserved else None,
        submission.idempotency_key,
        content_hash_of(submission) if reserved else None,
        CANON_VERSION if reserved else None,
        None,
        submission.traceparent,
        msgspec.json.encode(submission.tags).decode() if submission.tags else None,
        parent,
        int(detached),
        submission.hooks,
        submission.limit_key,
    )


def _options(submission: Submission) -> str:
    """Return what a job is run by. The tenant is there again, for its worker, unless it is the usual one."""
    if submission.rule is not None:
        said: dict[str, object] = {
            "attempts_max": submission.attempts_max,
            REUSE: submission.rule.reuse,
        }
        if submission.tenant_id != TENANT:
            said["tenant"] = submission.tenant_id
        return msgspec.json.encode(said).decode()
    if submission.tenant_id == TENANT:
        return f'{{"attempts_max":{submission.attempts_max}}}'
    return f'{{"attempts_max":{submission.attempts_max},"tenant":"{submission.tenant_id}"}}'


class _TenantForm(msgspec.Struct):
    tenant: str = TENANT


def tenant_in(options: str) -> str:
    """Return whose a job is that was submitted with these options.

    >>> tenant_in('{"attempts_max":3}'), tenant_in('{"attempts_max":3,"tenant":"acme"}')
    ('default', 'acme')
    """
    return msgspec.json.decode(options, type=_TenantForm).tenant if "tenant" in options else TENANT


def submit_jobs(
    like: Submission, payloads: Sequence[str], job_ids: Sequence[str], now: int
) -> list[SubmitJobs]:
    """Return the primitives of submissions that differ in their payloads alone and have no reservation.

    Each fills a flush.
    """
    shared = submit_job(like, "", now)
    pieces = [slice(start, start + FLUSH_BUNDLES_MAX) for start in range(0, len(job_ids), FLUSH_BUNDLES_MAX)]
    return [SubmitJobs(shared, job_ids[piece], payloads[piece]) for piece in pieces]


def claimed_at_birth(primitive: SubmitJob) -> ClaimedJob:
    """Return what a worker needs to run a job that was submitted and claimed in one bundle."""
    job, facts, _, lease = primitive
    if lease is None:
        raise BadInput("this job was not claimed when it was submitted")
    return ClaimedJob(
        Fence(job.job_id, 1, lease.lease_id),
        job.handler,
        job.version,
        job.payload,
        job.options,
        0,
        None if job.deadline_at is None else job.deadline_at - job.created_at,
        job.created_at,
        facts[-1].chain,
        (),
        (),
        0,
        parent_job_id=job.parent_job_id,
        idempotency_key=job.idempotency_key,
        tags=job.tags,
    )


def check_same_content(
    reservation: Reservation | None, existing: Existing, rule: KeyRule | None = None
) -> None:
    """Refuse one key with two contents, naming both; the same content is the same job.

    A caller that asks for the one job that is active under a key gets it, whatever its content is.
    """
    if rule is not None and rule.reuse == "while_active":
        return
    if reservation is None or reservation.content_hash == existing.content_hash:
        return
    raise IdempotencyConflict(
        f"the key {reservation.value!r} was used for job {existing.job_id} with other content "
        f"({existing.content_hash[:12]}…, now {reservation.content_hash[:12]}…); use another key",
        key=reservation.value,
        job_id=existing.job_id,
        existing_hash=existing.content_hash,
        submitted_hash=reservation.content_hash,
    )


def content_hash_of(submission: Submission) -> str:
    """Return the hash by which two submissions are the same."""
    return idempotency_hash(
        tenant_id=submission.tenant_id,
        request_type=submission.handler,
        input_ref=None,
        output_ref=None,
        payload=msgspec.json.decode(submission.payload),
        schema_version=submission.version or None,
    )


def _reservation(submission: Submission, content_hash: str | None) -> Reservation | None:
    if content_hash is None:
        return None
    if submission.idempotency_key is not None:
        return Reservation(
            submission.tenant_id, "key", submission.idempotency_key, content_hash, CANON_VERSION
        )
    return Reservation(submission.tenant_id, "content", content_hash, content_hash, CANON_VERSION)
