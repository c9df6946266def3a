"""The primitives of a store: the requests of `core`, and a user's transaction on a loan of the connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from tallystick.core.remote.keys import AddKey, RevokeKey
from tallystick.core.remote.requests import ProtocolRequest, SubmitCommand
from tallystick.core.requests import (
    Await,
    CancelJob,
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
)
from tallystick.core.values import Fence
from tallystick.core.verbs.control_requests import ForkJob, HoldJob, ResumeJob
from tallystick.errors import StoreBusy
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
        """Say who or what it waits for."""
        super().__init__(message, **fields)
        self.busy_ms = busy_ms


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
    | Await
    | TakeAnswer
    | Spawn
    | Cycle
    | CancelJob
    | HoldJob
    | ResumeJob
    | ForkJob
    | Deliver
    | PruneJobs
    | TakeHook
    | TellHook
    | RenewLeases
    | SaveSchedule
    | DropSchedule
    | RunTx
    | AddKey
    | RevokeKey
    | SubmitCommand
    | ProtocolRequest
)
Bundle: TypeAlias = tuple[Primitive, ...]


def call_off(batch: Sequence[Bundle]) -> None:
    """Let the threads go that wait for a loan in these bundles and will not get one."""
    for bundle in batch:
        for primitive in bundle:
            if type(primitive) is RunTx:
                primitive.turn.call_off()
