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
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

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
    driver: str = "start"
    waited: bool = False
    parent: tuple[str, str] | None = None

    @property
    def alone(self) -> bool:
        """Tell whether this ending touches more than its own job's row, and is written by itself."""
        return self.waited or self.parent is not None


class Wait(NamedTuple):
    """An activity that is answered by a message: a signal of its name, or its timer at `due_at`."""

    kind: Literal["wait", "sleep", "group"]
    name: str
    occurrence: int
    due_at: int | None


class Await(NamedTuple):
    """Take the answer to a wait, or end the segment until there is one; one bundle either way.

    If an unconsumed message answers the wait, the wait gets its result and the message its marks, and the outcome is
    the `Answer`: the segment goes on. Otherwise the wait is opened with leg 1 complete, the driving message is
    closed, the semaphore moves by what was opened less one, the attempt ends SUSPENDED and not charged, and the
    outcome is None. Delivery locks the same job row, so no wake-up falls between the look and the suspension.
    """

    fence: Fence
    driver: str
    dimension: int
    wait: Wait
    fact: Fact


class Deliver(NamedTuple):
    """Store a message for a job, once for each guid, and make the job due if it waits for it and nobody runs it."""

    guid: str
    job_id: str
    kind: Literal["signal", "timer", "child", "result", "resume"]
    name: str
    payload: str | None
    at: int


class Group(NamedTuple):
    """Where a group of children stands in its parent: one activity, however many children."""

    dimension: int
    name: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.dimension}:{self.name}#{self.occurrence}"


class Spawn(NamedTuple):
    """Open a group, the first time, and insert some of its children, each with its first event.

    Opening counts one obligation on the parent and `total` on the group. Children have identifiers that follow from
    their place, so a spawn that was cut short is simply made again.
    """

    fence: Fence
    group: Group
    total: int
    threshold: int
    fail_fast: bool
    children: tuple[tuple[NewJob, Fact], ...]
    at: int


class ChildRow(NamedTuple):
    """How a child stands."""

    job_id: str
    state: str
    result: str | None
    error: str | None
    error_code: str | None
    error_message: str | None


class Cycle(NamedTuple):
    """End the segment by a turn of the same job: next dimension, new arguments, empty history, due at once.

    What the old dimension had open is dropped. At the ceiling of entries nothing is written and the outcome is
    `LedgerCeiling`.
    """

    fence: Fence
    driver: str
    dimension: int
    payload: str
    fact: Fact


class CancelJob(NamedTuple):
    """Cancel a job: at once when nobody runs it, else by asking, with `grace_ms` to end by itself.

    With `force` the grace is over: the attempt is aborted, which fences whoever still runs it, and the job ends. On a
    final job nothing changes. The outcome is the state the job is in afterwards.
    """

    job_id: str
    at: int
    grace_ms: int
    force: bool = False


class Delivered(StrEnum):
    """What became of a message."""

    WOKE = "stored; the job is due now"
    KEPT = "stored; a live attempt or a later wait takes it"
    KNOWN = "it was delivered before"
    DROPPED = "the job has ended"


class Answer(NamedTuple):
    """What answered a wait; `payload` is None for a timer."""

    guid: str
    payload: str | None
    timed_out: bool


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
    SubmitJob
    | ClaimJobs
    | RecordStep
    | RecordEvent
    | EndAttempt
    | EndJob
    | Await
    | Spawn
    | Cycle
    | CancelJob
    | Deliver
    | RenewLeases
    | CountDown
    | RunTx
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
    driver: str = "start"
    parent: tuple[str, str] | None = None


class ExpiredAttempt(NamedTuple):
    """An attempt whose lease has run out, with what is needed to judge it."""

    fence: Fence
    status: str
    cancelling: bool
    driver: str
    charged_since_progress: int
    parent: tuple[str, str] | None
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

    def children(self, job_id: str, group: str) -> list[ChildRow]:
        """Return the children of a group in their order."""
        ...

    def cancelling(self, limit: int) -> list[tuple[str, int]]:
        """Return jobs that are asked to end and have not, with the end of their grace, soonest first."""
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
