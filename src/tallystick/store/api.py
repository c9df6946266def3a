"""What every store promises: primitives in bundles, bundles in batches.

A *primitive* is one guarded change. A *bundle* is a list of primitives that become durable together or
not at all. A *batch* is a list of bundles that share a flush and not their fate: one that is stale or in
conflict gets its own outcome and does not spoil that of another.

The vocabulary of a store is imported from here; `inspection`, for tools that look, is another door.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from tallystick.core.queues.rows import SaveQueue
from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey
from tallystick.core.remote.listing import StepRow
from tallystick.core.remote.requests import DueStep
from tallystick.core.remote.rows import OutboxRow, ProtocolPicture
from tallystick.core.requests import (
    AskRemotes,
    Await,
    CancelJob,
    CancelUnclaimed,
    ClaimJobs,
    Cycle,
    Deliver,
    DropSchedule,
    EndAttempt,
    EndJob,
    PruneJobs,
    ReclaimAttempt,
    RecordEvent,
    RecordStep,
    RenewLeases,
    SaveSchedule,
    SetValue,
    Spawn,
    SubmitJob,
    SubmitJobs,
    TakeAnswer,
    TakeHook,
    TellHook,
    TrimTurns,
)
from tallystick.core.values import (
    Answer,
    Asks,
    ChildRow,
    ClaimedJob,
    Delivered,
    Existing,
    ExpiredAttempt,
    Fact,
    Fence,
    Group,
    Interrupted,
    JobRow,
    NewJob,
    NewLease,
    Opened,
    OpenWait,
    Overdue,
    OwedHook,
    Pruned,
    Record,
    Reservation,
    ShownValue,
    StoredError,
    StoredEvent,
    TurnEnd,
    Wait,
    Wake,
)
from tallystick.core.verbs.control_requests import Forked, ForkJob, HoldJob, OfTenant, ResumeJob
from tallystick.store.inspection import Inspection
from tallystick.store.primitives import (
    Bundle,
    Effects,
    HeldUp,
    ManyWriters,
    Outcome,
    Primitive,
    QueueHasLimits,
    Queues,
    RunTx,
    Schedules,
    Searched,
    Transaction,
    call_off,
    searched,
)

__all__ = [
    "AddKey",
    "Answer",
    "ApiKey",
    "AskRemotes",
    "Asks",
    "Await",
    "Bundle",
    "CancelJob",
    "CancelUnclaimed",
    "ChildRow",
    "ClaimJobs",
    "ClaimedJob",
    "Cycle",
    "Deliver",
    "Delivered",
    "DropSchedule",
    "Effects",
    "EndAttempt",
    "EndJob",
    "Existing",
    "ExpiredAttempt",
    "Fact",
    "Fence",
    "ForkJob",
    "Forked",
    "Group",
    "HeldUp",
    "HoldJob",
    "Interrupted",
    "JobRow",
    "ManyWriters",
    "NewJob",
    "NewLease",
    "OfTenant",
    "OpenWait",
    "Opened",
    "Outcome",
    "Overdue",
    "OwedHook",
    "Primitive",
    "Protocols",
    "PruneJobs",
    "Pruned",
    "QueueHasLimits",
    "Queues",
    "ReclaimAttempt",
    "Record",
    "RecordEvent",
    "RecordStep",
    "RenewLeases",
    "Reservation",
    "ResumeJob",
    "RevokeKey",
    "RunTx",
    "SaveQueue",
    "SaveSchedule",
    "Schedules",
    "Searched",
    "SetValue",
    "ShownValue",
    "Spawn",
    "Store",
    "StoredError",
    "StoredEvent",
    "SubmitJob",
    "SubmitJobs",
    "TakeAnswer",
    "TakeHook",
    "TellHook",
    "Transaction",
    "TrimTurns",
    "TurnEnd",
    "Wait",
    "Wake",
    "call_off",
    "searched",
]


class Store(Protocol):
    """A place where bundles become durable."""

    @property
    def url(self) -> str:
        """Return the address, without secrets."""
        ...

    def apply(self, batch: Sequence[Bundle], *, again: bool = False) -> list[Outcome | BaseException]:
        """Make a batch durable and return one outcome per bundle; raise if nothing became durable.

        A bundle whose rows others hold is `HeldUp`, and waits for them no longer than a moment; hardly at all
        if it is tried `again` for that reason.

        `OutcomeUnknown` says that the store cannot tell; the chains of the batch are doubtful then.

        No thread waits for a loan of it afterwards, whatever happened.
        """
        ...

    def now(self) -> int:
        """Return the time by the store's clock, which leases of remote steps and keys are judged by."""
        ...

    def pulse(self) -> int:
        """Return, cheaply, a number that is another one whenever the store was written to meanwhile."""
        ...

    def listen(self, heard: Callable[[], None], name: str) -> Callable[[], None]:
        """Call `heard`, from a thread of its own, soon after another process has written; return how to stop.

        A hint that may be lost or come for nothing, and on many stores never comes: a caller that relies on
        `pulse` alone is late, never wrong. No other listener has this `name`.
        """
        ...

    def next_due(self, queues: Sequence[str], after: int = 0) -> int | None:
        """Return the first instant after this one at which a job becomes due, if any is waiting.

        Both are by the clock of this process, whatever clock the store keeps its due times by.
        What is due already and was left must not hide what becomes due later.
        """
        ...

    def expired(self, limit: int) -> list[ExpiredAttempt]:
        """Return attempts whose lease has run out, oldest first."""
        ...

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        ...

    def steps(self, job_id: str, after: tuple[int, str, int] | None, limit: int) -> list[StepRow]:
        """Return a page of the steps of a job by dimension, name, occurrence; `after` is the last before.

        Those of a protocol job come in the order in which they are worked on.
        """
        ...

    def in_flight(self, tenant_id: str, limit: int) -> int:
        """Return how many protocol jobs of a tenant have not ended, counted up to a limit."""
        ...

    def is_reserved(self, tenant_id: str, scope: str, value: str) -> bool:
        """Tell whether a reservation is there."""
        ...

    def key(self, kid: str) -> ApiKey | None:
        """Return one API key by its name, whether it still works or not."""
        ...

    def keys(self) -> list[ApiKey]:
        """Return every API key; for people, and for a start without any."""
        ...

    def jobs(
        self,
        *,
        tenant_id: str | None,
        states: Sequence[str],
        handler: str | None,
        after: str | None,
        limit: int,
        tag: str | None = None,
    ) -> list[JobRow]:
        """Return a page of jobs of a tenant, or of all (None), newest first.

        `after` is the last job_id of the page before.
        """
        ...

    def has_signal(self, job_id: str, names: Sequence[str]) -> bool:
        """Tell whether a signal of one of these names is in the job's inbox; a hint, not a promise."""
        ...

    def history(self, job_id: str) -> list[StoredEvent]:
        """Return every event of a job in order, inline steps included."""
        ...

    def values(self, job_ids: Sequence[str], name: str = "") -> list[ShownValue]:
        """Return the values that these jobs show, of one name if it is given, those set first in front."""
        ...

    def began(self, job_id: str) -> dict[int, int]:
        """Return when steps and waits of a job began, by their places in its history."""
        ...

    def counts(self) -> dict[str, int]:
        """Return how many jobs stand in each state; for people, not for the hot path."""
        ...

    def started_by(self, job_id: str, *, after: str, limit: int) -> list[str]:
        """Return a page of the jobs that a job has started, detached ones too; `after` as in `children`."""
        ...

    def children(self, job_id: str, group: Group, *, after: str, limit: int) -> list[ChildRow]:
        """Return a page of the children of a group in their order; `after` is the last of the page before."""
        ...

    def finished_children(self, job_ids: Sequence[str]) -> dict[str, ChildRow]:
        """Return those of these jobs that have ended, as their parents see them."""
        ...

    def overdue(self, limit: int) -> list[Overdue]:
        """Return jobs whose grace is over, and jobs whose deadline has passed, by the store's clock.

        Up to `limit` of each.
        """
        ...

    def next_end(self) -> int | None:
        """Return the instant at which the next grace or deadline is over, by the clock of this process."""
        ...

    def owed_hooks(self, handlers: Sequence[str], limit: int) -> list[OwedHook]:
        """Return jobs of these workflows to which a hook is owed now, by the store's clock, longest first."""
        ...

    def interrupted(self, job_ids: Sequence[str]) -> list[Interrupted]:
        """Return those of these jobs that are asked to end, held, or have ended."""
        ...

    def dead(
        self, *, tenant_id: str | None, handler: str | None, after: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs that have failed and were not retried, newest first; `after` as in `jobs`."""
        ...

    def finished(self, job_ids: Sequence[str]) -> dict[str, JobRow | None]:
        """Return those of these jobs that have ended, and None for each that is not there."""
        ...

    def traceparent(self, job_id: str) -> str | None:
        """Return the span that a job was submitted in, as W3C writes it; None if it was in none."""
        ...

    def inspect(self) -> Inspection:
        """Return the reads of a check; they are for people."""
        ...

    def checkpoint(self) -> None:
        """Do what keeps the store small and fast between two flushes; called by the committer."""
        ...

    def connect(self) -> AbstractContextManager[Transaction]:
        """Lend a connection of its own to the calling thread, for reading."""
        ...

    def transaction(self, ms_max: int = ...) -> AbstractContextManager[Transaction]:
        """Lend a transaction of its own to the calling thread, and roll it back when its time is up.

        That happens whatever the thread does; its next call and the end of its block are `TxTooLong` then.
        """
        ...

    def join(self, transaction: object) -> Transaction:
        """Return a transaction that our bundles can be part of; refuse one that is not on these very books.

        It is one on loan; where there are many writers also one that the user began by other means.
        """
        ...

    def check_may_wait(self) -> None:
        """Refuse to wait, in a thread that holds a transaction, for anything that is to become durable."""
        ...

    def close(self) -> None:
        """Give back every descriptor and thread."""
        ...


@runtime_checkable
class Protocols(Protocol):
    """What a store can do in addition when it keeps protocol jobs: it takes their requests in bundles of one.

    The outcome of a request is a `Hearing`, that of a command also `Existing`. What is read here is true when
    it is given; a request decides again, under the lock.
    """

    def protocol(self, job_id: str) -> ProtocolPicture | None:
        """Return a protocol job with its steps and the directive that is not out."""
        ...

    def directive(self, outbox_id: str) -> OutboxRow | None:
        """Return one directive."""
        ...

    def due_steps(self, limit: int) -> list[DueStep]:
        """Return remote steps that need the sweep (`ExpireStep`), the longest over first."""
        ...

    def due_directives(self, via: str, limit: int) -> list[OutboxRow]:
        """Return directives for one endpoint that a relay may take now (`TakeDirective`), longest first."""
        ...

    def stray_directives(self, known: Sequence[str], late_ms: int, limit: int) -> list[OutboxRow]:
        """Return directives for other endpoints than these that have been due so long, the longest first."""
        ...

    def asked_directives(self, services: Sequence[str], tenant_id: str | None, limit: int) -> list[OutboxRow]:
        """Return directives that a remote worker may be given (`DeliverDirective`), the oldest first."""
        ...

    def given_directives(self, worker: str, limit: int) -> list[OutboxRow]:
        """Return what this remote worker was given and has not acknowledged, while there is time for that."""
        ...
