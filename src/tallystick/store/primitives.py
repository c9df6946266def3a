"""The primitives of a store: the requests of `core`, and a user's transaction on a loan of the connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from tallystick.core.effects.requests import DueProbe, EffectRequest, PruneEffects
from tallystick.core.effects.rows import EffectRow
from tallystick.core.queues.admitting import Slot
from tallystick.core.queues.reusing import TakeKey
from tallystick.core.queues.rows import Queue, SaveQueue
from tallystick.core.remote.keys import AddKey, RevokeKey
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand
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
from tallystick.core.schedules.rows import Schedule
from tallystick.core.values import Fence, JobRow
from tallystick.core.verbs.control_requests import ForkJob, HoldJob, OfTenant, ResumeJob
from tallystick.core.watching.acts import About, Act, NoteAct
from tallystick.core.watching.rows import LeaveWorker, ReportWorker
from tallystick.core.watching.searching import (
    WINDOW_JOBS,
    CountedJobs,
    EffectSearch,
    FoundEffects,
    FoundJobs,
    JobSearch,
)
from tallystick.errors import BadInput, StoreBusy
from tallystick.store.rendezvous import Rendezvous


class RunTx(NamedTuple):
    """Run a user's function on the store's connection and record its step, in one transaction with the fence.

    The transaction is lent to the thread that waits at `turn`, which answers with the step to record. If it
    raises, takes longer than `ms_max`, or the fence is gone when it ends, its writes are rolled back alone
    and the outcome is that error.
    """

    fence: Fence
    turn: Rendezvous[Transaction, RecordStep]
    ms_max: int


Outcome: TypeAlias = object
"""The value of a bundle's last primitive; what refuses a bundle is an exception, often a `TallyError`."""


class HeldUp(StoreBusy):
    """The outcome of a bundle that others hold rows of: nothing of it was written, and it may be tried again.

    For `busy_ms`, since it was first held up, there is a point in that.
    """

    def __init__(self, message: str, *, busy_ms: int, **fields: object) -> None:
        """Say what it waits for."""
        super().__init__(message, **fields)
        self.busy_ms = busy_ms


class QueueHasLimits(HeldUp):
    """The outcome of a submission that was to begin at once, in a queue whose limits decide about that."""

    def __init__(self, queue: str) -> None:
        """Name the queue."""
        super().__init__(
            f"the limits of the queue {queue} decide when its jobs begin", busy_ms=0, queue=queue
        )
        self.queue = queue


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
    SubmitJob
    | SubmitJobs
    | ClaimJobs
    | RecordStep
    | RecordEvent
    | SetValue
    | EndAttempt
    | EndJob
    | ReclaimAttempt
    | AskRemotes
    | Await
    | TakeAnswer
    | Spawn
    | Cycle
    | CancelJob
    | CancelUnclaimed
    | HoldJob
    | ResumeJob
    | ForkJob
    | Deliver
    | PruneJobs
    | PruneEffects
    | TrimTurns
    | TakeHook
    | TellHook
    | RenewLeases
    | SaveSchedule
    | DropSchedule
    | SaveQueue
    | TakeKey
    | ReportWorker
    | LeaveWorker
    | NoteAct
    | OfTenant
    | RunTx
    | AddKey
    | RevokeKey
    | SubmitCommand
    | ProtocolRequest
    | EffectRequest
)
Bundle: TypeAlias = tuple[Primitive, ...]


def call_off(batch: Sequence[Bundle]) -> None:
    """Let the threads go that wait for a loan in these bundles and will not get one."""
    for bundle in batch:
        for primitive in bundle:
            if type(primitive) is RunTx:
                primitive.turn.call_off()


@runtime_checkable
class ManyWriters(Protocol):
    """What a store can do in addition when transactions of several connections run side by side.

    On such a store a user's function does not share the committer's transaction: it runs in its own thread,
    on a connection of its own, and holds up no other.
    """

    def run_tx(
        self, fence: Fence, body: Callable[[Transaction], RecordStep], ms_max: int, lease_ms: int
    ) -> RecordStep:
        """Run a user's function in this thread and record the step it returns, in one transaction.

        The attempt's row is held from first to last, and the lease is checked again at the end, so no worker
        takes over in between. Heartbeats pass a held row by, so the lease is renewed here, by `lease_ms`.
        If the body raises, takes longer than `ms_max`, or the lease is gone, nothing is durable and that
        error is raised. A body whose transaction lost against another, or its connection, is run again, a
        few times.
        """
        ...

    def lend_as(self, transaction: Transaction, kind: type) -> AbstractContextManager[object]:
        """Lend a transaction as what another library knows, while a user's function runs."""
        ...

    async def apply_on_loop(self, transaction: object, bundles: Sequence[Bundle]) -> list[Outcome]:
        """Write bundles in a transaction that the user began on the running event loop, without blocking."""
        ...


@runtime_checkable
class Effects(Protocol):
    """What a store can do in addition when it keeps effects. What is read is true when it is given."""

    def job(self, job_id: str) -> JobRow | None:
        """Return the row of a job."""
        ...

    def due_probes(self, effects: Sequence[str], limit: int) -> list[DueProbe]:
        """Return effects of these names whose probes are to be asked now, the longest waiting first."""
        ...

    def open_effects(self, tenant_id: str, key: str) -> list[EffectRow]:
        """Return the effects of any job that have a key and an unknown outcome."""
        ...

    def effects(self, job_id: str) -> list[EffectRow]:
        """Return the effects of a job, in the order of their intents."""
        ...


@runtime_checkable
class Queues(Protocol):
    """What a store can do in addition when it keeps the limits of queues."""

    def queues(self, *, after: str, limit: int) -> list[Queue]:
        """Return a page of the queues that have a row, by name; `after` is the last of the page before."""
        ...

    def queue(self, name: str) -> Queue | None:
        """Return one queue, if it has a row."""
        ...

    def limited(self) -> list[str]:
        """Return the names of all queues that have a row."""
        ...

    def rest_of(self, names: Iterable[str], *, asked_ms: int = 0) -> int | None:
        """Return for how many milliseconds these queues may be left alone; None if nothing waits in them.

        That is 0 if a token came after the last claim of the worker was asked for, `asked_ms` ago.
        """
        ...

    def taken_slots(self, name: str) -> list[Slot]:
        """Return the slots of a queue that count now."""
        ...


@runtime_checkable
class Schedules(Protocol):
    """What a store can do in addition when it keeps schedules. What is read is true when it is given."""

    def schedules(self, *, after: str, limit: int) -> list[Schedule]:
        """Return a page of the schedules by their names; `after` is the last one of the page before."""
        ...

    def schedule(self, schedule_id: str) -> Schedule | None:
        """Return one schedule."""
        ...

    def due_schedules(self, limit: int) -> tuple[int, list[Schedule]]:
        """Return the time by the store's clock, and the schedules that are due then, the longest first."""
        ...

    def next_tick(self) -> int | None:
        """Return how many milliseconds from now the next schedule is due, if any is."""
        ...


@runtime_checkable
class Searched(Protocol):
    """What a store can find for people."""

    def jobs_found(
        self, search: JobSearch, *, before: str | None, limit: int, window: int = WINDOW_JOBS
    ) -> FoundJobs:
        """Return jobs that have all of this in common, among `window` jobs before one."""
        ...

    def count_found(
        self,
        search: JobSearch,
        *,
        before: str | None,
        limit: int,
        window: int = WINDOW_JOBS,
        reached: str | None = None,
    ) -> CountedJobs:
        """Return how many there are in the same window, counted up to a limit.

        `reached` is where the window ends, if a search has found that out.
        """
        ...

    def held_jobs(
        self, tenant_id: str, holds: Sequence[str], *, before: str | None, limit: int
    ) -> list[JobRow]:
        """Return a page of jobs of a tenant that one of these holds, newest first."""
        ...

    def late_jobs(self, tenant_id: str, *, limit: int, window: int = WINDOW_JOBS) -> FoundJobs:
        """Return jobs of a tenant whose grace or deadline is over, of `window` of each in the store.

        `reached` is one of those that were looked at last, if there may be others behind it.
        """
        ...

    def lost_jobs(self, tenant_id: str, *, limit: int) -> list[JobRow]:
        """Return jobs of a tenant that a worker had whose lease has run out, the longest over first."""
        ...

    def ended_of_workers(self, since_ms: int) -> dict[str, int]:
        """Return how many jobs each worker has ended since an instant."""
        ...

    def effects_found(
        self, search: EffectSearch, *, after: str | None, limit: int, window: int = WINDOW_JOBS
    ) -> FoundEffects:
        """Return effects that have all of this in common, among `window` behind the place `after`."""
        ...

    def acts(
        self, about: Sequence[About], name: str | None = None, *, before: int | None = None, limit: int
    ) -> list[Act]:
        """Return what people did to jobs, queues or schedules, or to one of them, the newest first.

        `before` is the `seq` of the last one of the page before.
        """
        ...


def searched(store: object) -> Searched:
    """Return a store in which people can look for things, or say which ones are."""
    if not isinstance(store, Searched):
        where = getattr(store, "url", "this address")
        raise BadInput(f"the store at {where} cannot be searched; SQLite and PostgreSQL can")
    return store
