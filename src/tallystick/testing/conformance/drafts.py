"""Primitives as tests write them: short, with every column that does not matter filled in."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.clock import Clock, VirtualClock
from tallystick.core.chain import GENESIS, Chain, event_hash
from tallystick.core.ledger.decisions import Reclaim
from tallystick.core.lifecycles import JobState
from tallystick.ids import SystemIds
from tallystick.store.api import (
    AskRemotes,
    Asks,
    Bundle,
    ClaimedJob,
    ClaimJobs,
    EndAttempt,
    EndJob,
    ExpiredAttempt,
    Fact,
    Fence,
    HeldUp,
    NewJob,
    NewLease,
    Outcome,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    Reservation,
    Store,
    StoredError,
    StoredEvent,
    SubmitJob,
    Wait,
)
from tallystick.testing.expected_digits import SETTLED

LEASE_MS = 30_000
FRESH = SystemIds()


def submission(
    clock: Clock, job_id: str = "", *, key: str = "", content: str = "c", **columns: object
) -> SubmitJob:
    """Return a submission; with `key` it is idempotent."""
    job_id = job_id or FRESH.new()
    now = clock.wall_ms()
    job = NewJob(job_id, "{}", now, None, now, "default", "workflow", "pay", "", "default", 5, "{}")
    reservation = Reservation("default", "key", key, content, 1) if key else None
    return SubmitJob(
        job._replace(**columns),  # type: ignore[arg-type]  # tests name columns, each with its own type
        (Fact(Chain(job_id), "submit", now, 0, "{}"),),
        reservation,
    )


def born_claimed(clock: Clock, job_id: str = "", *, lease_ms: int = LEASE_MS) -> tuple[SubmitJob, ClaimedJob]:
    """Return a submission that also claims its job, and what its worker then holds."""
    plain = submission(clock, job_id)
    chain = plain.facts[0].chain
    facts = (*plain.facts, Fact(chain, "claim", clock.wall_ms(), 1, "{}"))
    lease = NewLease(FRESH.token(), "worker", lease_ms)
    fence = Fence(plain.job.job_id, 1, lease.lease_id)
    job = plain.job
    held = ClaimedJob(fence, job.handler, job.version, "{}", "{}", 0, None, job.created_at, chain, (), (), 0)
    return plain._replace(facts=facts, lease=lease), held


def claim(
    limit: int = 1,
    *,
    queues: Sequence[str] = ("default",),
    handlers: Sequence[tuple[str, str]] = (("pay", ""),),
    lease_ms: int = LEASE_MS,
) -> ClaimJobs:
    """Return a claim."""
    return ClaimJobs("worker", tuple(queues), frozenset(handlers), limit, lease_ms, FRESH.token)


def step(held: ClaimedJob, clock: Clock, name: str = "charge", occurrence: int = 1) -> RecordStep:
    """Return a step that succeeded."""
    now = clock.wall_ms()
    return RecordStep(
        held.fence,
        held.chain,
        held.dimension,
        name,
        occurrence,
        "step",
        "SUCCEEDED",
        SETTLED,
        '"r"',
        None,
        None,
        now,
        now,
    )


def failed_try(held: ClaimedJob, clock: Clock) -> RecordEvent:
    """Return a failed try."""
    return RecordEvent(held.fence, Fact(held.chain, "try", clock.wall_ms(), held.fence.attempt, '{"try":1}'))


def release(held: ClaimedJob, clock: Clock, *, delay_ms: int = 0, hold: str | None = None) -> EndAttempt:
    """Return the end of an attempt that leaves its job to others, or holds it."""
    now = clock.wall_ms()
    fact = Fact(held.chain, "release", now, held.fence.attempt, "{}")
    ready_at = None if hold else now + delay_ms
    return EndAttempt(held.fence, "ERROR", True, ready_at, hold, hold and "for this test", fact)


def finish(held: ClaimedJob, clock: Clock, *, result: str = '"ok"') -> EndJob:
    """Return the end of a job that went well."""
    fact = Fact(held.chain, "return", clock.wall_ms(), held.fence.attempt, "{}")
    return EndJob.of(held.fence, JobState.SUCCEEDED, fact, result=result)


def fail(held: ClaimedJob, clock: Clock) -> EndJob:
    """Return the end of a job that went badly."""
    fact = Fact(held.chain, "fail", clock.wall_ms(), held.fence.attempt, "{}")
    error = StoredError('{"type":"E"}', "E_CODE", "no")
    return EndJob.of(held.fence, JobState.FAILED_FINAL, fact, reason="FATAL", error=error)


def asking(held: ClaimedJob, payload: str = "{}") -> AskRemotes:
    """Return what lets the directive of a remote step out while the segment goes on."""
    asks = Asks("bank", "charge", payload, "{}", FRESH.token())
    wait = Wait("remote", "charge", 1, None, asks)
    return AskRemotes(held.fence, held.chain, held.dimension, (wait,))


def reclaim(expired: ExpiredAttempt) -> ReclaimAttempt:
    """Return what a sweep asks for an attempt whose lease has run out."""
    return ReclaimAttempt(expired.fence, expired.unit)


def lose_all(store: Store, clock: VirtualClock, lease_ms: int) -> int:
    """Let leases of so long run out, reclaim what they held, and return how many attempts that were."""
    clock.advance(lease_ms)
    lost = store.expired(100)
    assert store.apply([(reclaim(gone),) for gone in lost]) == [Reclaim.RETRY] * len(lost)
    return len(lost)


def suspects(store: Store, clock: VirtualClock, count: int) -> list[str]:
    """Return jobs over each of which two workers were lost, in the order of their claims."""
    held = [held_job(store, clock, lease_ms=100) for _ in range(count)]
    assert lose_all(store, clock, 100) == count
    assert len(claimed(store, claim(count, lease_ms=100))) == count
    assert lose_all(store, clock, 100) == count
    return [job.fence.job_id for job in held]


def outcome_of(store: Store, *bundle: object) -> Outcome | BaseException:
    """Apply one bundle alone, again while others hold its rows, and return its outcome, refusals included."""
    (outcome,) = store.apply([bundle])  # type: ignore[list-item]  # a bundle is a tuple of primitives
    while isinstance(outcome, HeldUp):
        (outcome,) = store.apply([bundle], again=True)  # type: ignore[list-item]  # as above
    return outcome


def done(store: Store, *bundle: object) -> Outcome:
    """Apply one bundle alone and insist that it was accepted."""
    outcome = outcome_of(store, *bundle)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def claimed(store: Store, request: ClaimJobs) -> list[ClaimedJob]:
    """Claim, and return what was claimed."""
    found = done(store, request)
    assert isinstance(found, list)
    return found


def held_job(store: Store, clock: Clock, *, lease_ms: int = LEASE_MS) -> ClaimedJob:
    """Submit a job that is claimed at birth and return what its worker holds."""
    bundle, held = born_claimed(clock, lease_ms=lease_ms)
    done(store, bundle)
    return held


def bundles(*primitives: object) -> list[Bundle]:
    """Return a batch in which every primitive is a bundle of its own."""
    return [(primitive,) for primitive in primitives]  # type: ignore[misc]  # as in outcome_of


def check_chain(history: Sequence[StoredEvent]) -> None:
    """Insist that a history has no gap and that every hash can be computed again."""
    before = GENESIS
    for n, event in enumerate(history, start=1):
        assert (event.n, event.prev_hash) == (n, before)
        before = event_hash(
            event.prev_hash, event.job_id, event.n, event.type, event.at, event.attempt, event.payload
        )
        assert event.event_hash == before
