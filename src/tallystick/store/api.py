"""What every store promises: primitives in bundles, bundles in batches.

A *primitive* is one guarded change. A *bundle* is a list of primitives that become durable together or not
at all. A *batch* is a list of bundles that share a flush and not their fate: one that is stale or in
conflict gets its own outcome and spoils nobody else's.

Every primitive that acts for a worker carries a `Fence`. It is checked in the transaction that writes,
against the clock of the store, after the lock is held; a stale one changes nothing and its outcome is
`StaleLease`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from tallystick.core.chain import Chain
from tallystick.store.turn import Turn


class Fence(NamedTuple):
    """The right of one live attempt to write for its job."""

    job_id: str
    attempt: int
    lease_id: str


class Fact(NamedTuple):
    """Something that becomes true; it takes its place in the chain when it is written."""

    chain: Chain
    type: str
    at: int
    attempt: int
    payload: str


class Event(NamedTuple):
    """A fact in its place, linked to the one before it."""

    job_id: str
    n: int
    type: str
    at: int
    attempt: int
    payload: str
    prev_hash: bytes
    event_hash: bytes


class Reservation(NamedTuple):
    """A claim on (tenant, scope, value): whoever writes it first has made the job."""

    tenant_id: str
    scope: Literal["key", "content"]
    value: str
    content_hash: str
    canon_version: int


class NewLease(NamedTuple):
    """The lease that a claim writes."""

    lease_id: str
    owner: str
    lease_ms: int


class NewJob(NamedTuple):
    """The columns of a job that its submission decides."""

    job_id: str
    tenant_id: str
    kind: str
    handler: str
    version: str
    queue: str
    priority: int
    ready_at: int
    deadline_at: int | None
    created_at: int
    payload: str
    options: str
    request_type: str | None = None
    input_ref: str | None = None
    output_ref: str | None = None
    schema_version: str | None = None
    idempotency_key: str | None = None
    idempotency_hash: str | None = None
    canon_version: int | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    tags: str | None = None


class SubmitJob(NamedTuple):
    """Insert reservation, job (semaphore 1) and its first event, and with `lease` also claim it.

    One bundle: a crash leaves all of it or nothing. When the reservation exists already, nothing is written
    and the outcome is `Existing`. With a lease the job is born IN_PROGRESS with its first attempt and
    `events` has two.
    """

    job: NewJob
    facts: tuple[Fact, ...]
    reservation: Reservation | None = None
    lease: NewLease | None = None


class ClaimJobs(NamedTuple):
    """Claim up to `limit` due jobs: attempt inserted, job taken, message entered, event; each whole or not.

    Only handlers in `handlers` (name, version) are considered. The entry marker of the message is committed
    here, before any work, so a job that kills its worker is counted.
    """

    owner: str
    queues: tuple[str, ...]
    handlers: frozenset[tuple[str, str]]
    limit: int
    lease_ms: int
    lease_ids: Callable[[], str]


class RecordStep(NamedTuple):
    """Insert the row of an inline step under the fence: result, digits and event in one row."""

    fence: Fence
    chain: Chain
    dimension: int
    name: str
    occurrence: int
    kind: str
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    at: int


class RecordEvent(NamedTuple):
    """Append an event under the fence (a failed try, a note)."""

    fence: Fence
    fact: Fact


class EndAttempt(NamedTuple):
    """Abort the attempt and leave its job to others: due again at `ready_at`, or held, with an event.

    With `expired` the fence must have run out instead of being live: that is how a sweep reclaims.
    """

    fence: Fence
    reason: str
    charged: bool
    ready_at: int | None
    hold: str | None
    hold_reason: str | None
    fact: Fact
    expired: bool = False


class EndJob(NamedTuple):
    """Close the job: result or error, attempt ended, semaphore down, start message marked, event, one bundle.

    The closer digit is set in the same statement that moves the semaphore. A job that fails closes like any
    other.
    """

    fence: Fence
    state: str
    attempt_status: str
    reason: str | None
    charged: bool
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None
    fact: Fact
    expired: bool = False


class RenewLeases(NamedTuple):
    """Move the end of all these leases, in one statement. An expired one is never revived.

    The outcome is the set of fences that are still held.
    """

    fences: tuple[Fence, ...]
    lease_ms: int


class CountDown(NamedTuple):
    """Step 2 of a leg-2 message: semaphore, marker and closer digit in one statement.

    `name` empty: the semaphore of the whole job; else that of the group (dimension, name, occurrence). In a
    batch the requests apply in order, so a threshold that is passed is hit. The outcome is whether this one
    hit it.
    """

    job_id: str
    dimension: int
    name: str
    occurrence: int
    guid: str
    delta: int
    threshold: int


class RunTx(NamedTuple):
    """Run a user's function on the store's connection and record its step, in one transaction with the fence.

    The transaction is lent to the thread that waits at `turn`, which answers with the step to record. If it
    raises, takes longer than `ms_max`, or the fence is gone when it ends, its writes are rolled back alone
    and the outcome is that error.
    """

    fence: Fence
    turn: Turn[Transaction, RecordStep]
    ms_max: int


@runtime_checkable
class Transaction(Protocol):
    """The part of a connection that a user's transaction may use."""

    def execute(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        ...

    def executemany(
        self, sql: str, rows: Iterable[Sequence[object] | Mapping[str, object]]
    ) -> list[tuple[Any, ...]]:
        """Run one statement for every row of parameters and return all rows it gave."""
        ...

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles inside this transaction."""
        ...


Primitive: TypeAlias = (
    SubmitJob | ClaimJobs | RecordStep | RecordEvent | EndAttempt | EndJob | RenewLeases | CountDown | RunTx
)
Bundle: TypeAlias = tuple[Primitive, ...]


class Existing(NamedTuple):
    """The submission met an earlier one under the same reservation."""

    job_id: str
    content_hash: str
    created_at: int


class Record(NamedTuple):
    """One recorded step, as replay needs it."""

    name: str
    occurrence: int
    kind: str
    state: str
    n: int
    result: str | None
    error: str | None
    notes: str | None


class ClaimedJob(NamedTuple):
    """Everything a worker needs to run a segment; nothing else is read while it runs."""

    fence: Fence
    handler: str
    version: str
    payload: str
    options: str
    dimension: int
    deadline_at: int | None
    created_at: int
    chain: Chain
    records: tuple[Record, ...]
    tries: tuple[Event, ...]
    charged: int


class ExpiredAttempt(NamedTuple):
    """An attempt whose lease has run out, with what is needed to judge it."""

    fence: Fence
    status: str
    charged_since_progress: int
    options: str
    chain: Chain


class JobRow(NamedTuple):
    """A job as people and programs look at it."""

    job_id: str
    state: str
    handler: str
    version: str
    queue: str
    priority: int
    tenant_id: str
    attempt: int
    ready_at: int | None
    hold: str | None
    hold_reason: str | None
    semaphore: int
    start_ledger: int
    created_at: int
    updated_at: int
    completed_at: int | None
    deadline_at: int | None
    payload: str
    options: str
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None
    idempotency_key: str | None
    idempotency_hash: str | None
    tags: str | None


Outcome: TypeAlias = object
"""The value of a bundle's last primitive; what refuses a bundle is an exception, often a `TallyError`."""


class Store(Protocol):
    """A place where bundles become durable."""

    @property
    def url(self) -> str:
        """Return the address, without secrets."""
        ...

    def apply(self, batch: Sequence[Bundle]) -> list[Outcome | BaseException]:
        """Make a batch durable and return one outcome a bundle; raise only if nothing became durable."""
        ...

    def changed(self) -> bool:
        """Tell, cheaply, whether another process may have written since the last call."""
        ...

    def next_due(self, queues: Sequence[str]) -> int | None:
        """Return the wall-clock instant at which the next job becomes due, if any is waiting."""
        ...

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out, oldest first."""
        ...

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        ...

    def jobs(
        self, *, tenant_id: str, states: Sequence[str], handler: str | None, after: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs, newest first; `after` is the last job_id of the page before."""
        ...

    def history(self, job_id: str) -> list[Event]:
        """Return every event of a job in order, inline steps included."""
        ...

    def counts(self) -> dict[str, int]:
        """Return how many jobs stand in each state; for people, not for the hot path."""
        ...

    def finished(self, job_ids: Sequence[str]) -> list[JobRow]:
        """Return those of these jobs that have ended."""
        ...

    def checkpoint(self) -> None:
        """Do what keeps the store small and fast between two flushes; called by the committer."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Lend a transaction of its own to the calling thread."""
        ...

    def close(self) -> None:
        """Give back every descriptor and thread."""
        ...


@runtime_checkable
class ManyWriters(Protocol):
    """What a store can do in addition when transactions of several connections run side by side.

    On such a store a user's function does not share the committer's transaction: it runs in its own thread, on
    a connection of its own, and holds up nobody.
    """

    def run_tx(
        self, fence: Fence, body: Callable[[Transaction], RecordStep], ms_max: int, lease_ms: int
    ) -> RecordStep:
        """Run a user's function in this thread and record the step it returns, in one transaction.

        The attempt's row is held from first to last, and the lease is checked again at the end, so nobody takes
        over in between. Heartbeats pass a held row by, so the lease is renewed here, by `lease_ms`. If the body
        raises, takes longer than `ms_max`, or the lease is gone, nothing is durable and that error is raised. A
        body whose transaction lost against another, or its connection, is run again, a few times.
        """
        ...

    def join(self, connection: object) -> Transaction:
        """Return a transaction that the user began by other means, so that our bundles can be part of it."""
        ...
