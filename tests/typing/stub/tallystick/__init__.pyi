"""The public API as its users' type checkers must see it.

A promise before the code exists: `passes.py` and `fails.py` are checked against this file, and later against the
package itself.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import (
    Any,
    Concatenate,
    Generic,
    Never,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)
from uuid import UUID

import psycopg
from sqlalchemy.orm import Session

P = ParamSpec("P")
R = TypeVar("R")
# What a tx on PostgreSQL may take its transaction as.
L = TypeVar("L", bound=psycopg.Connection[Any] | Session)
R_co = TypeVar("R_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

# "30s", "15m", "2d", seconds, or a timedelta.
Duration: TypeAlias = str | float | timedelta
# What a workflow may start and wait for: a child, or a call that is made when `gather` reaches it (coming).
Startable: TypeAlias = Child[A] | Callable[[], A]

# --- values that handlers are given -------------------------------------------------------------------------

class Tx:
    """The transaction that carries the user's writes and the marker of the step."""

    def execute(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ...) -> Rows: ...

class AsyncTx:
    """The transaction of an `async def` tx."""

    async def execute(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ...
    ) -> list[tuple[Any, ...]]: ...

class Rows(Iterable[tuple[Any, ...]], Protocol):
    """What a statement returned."""

    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...

class Key(str):
    """The idempotency key of an effect, to hand to the other side."""

class Retry:
    """How often, how soon and for which errors a step is tried again."""

    def __init__(
        self,
        tries: int = ...,
        *,
        first: Duration = ...,
        longest: Duration = ...,
        on: Sequence[type[BaseException]] = ...,
    ) -> None: ...

class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = ...
    DISPATCHING = ...
    IN_PROGRESS = ...
    CANCELLING = ...
    SUCCEEDED = ...
    FAILED_FINAL = ...
    CANCELLED = ...

class Delivered(StrEnum):
    """What became of a signal."""

    WOKE = ...
    KEPT = ...
    KNOWN = ...
    DROPPED = ...
    ABSENT = ...

class MapSummary:
    """How a map ended."""

    @property
    def total(self) -> int: ...
    @property
    def succeeded(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def skipped(self) -> int: ...

# --- errors -------------------------------------------------------------------------------------------------

class TallyError(Exception): ...

class Fatal(Exception):
    """Raised by a step that must not be tried again."""

class StepFailed(TallyError):
    type: str
    message: str
    code: str
    tries: int

class ChildrenFailed(TallyError):
    errors: tuple[TallyError, ...]

class JobFailed(TallyError): ...
class JobCancelled(TallyError): ...
class OutsideWorkflow(TallyError): ...
class Cancelled(BaseException): ...

# COROUTINES_FIRST: each decorator is overloaded, first for coroutine functions and then for any function. Checkers
# point out that the first is a special case of the second with another result, which is the intention.

# --- handlers: what the decorators return -------------------------------------------------------------------

class SyncCall(Generic[P, R_co]):
    """A handler that a sync workflow calls plainly and an async one through `.aio`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @property
    def aio(self) -> Callable[P, Coroutine[Any, Any, R_co]]: ...

class AsyncCall(Generic[P, R_co]):
    """A handler that an async workflow awaits."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...

class StepOptions:
    """What a call of a step can be told; options never stand beside the arguments."""

    def opts(self, *, retry: Retry = ..., timeout: Duration = ...) -> Self: ...
    def named(self, name: str) -> Self: ...

class Step(SyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[P, R_co]: ...

class AsyncStep(AsyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[P, Coroutine[Any, Any, R_co]]: ...

class TxStep(SyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[Concatenate[Tx, P], R_co]: ...

class AsyncTxStep(AsyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R_co]]: ...

class TxStepAs(SyncCall[P, R_co], StepOptions, Generic[L, P, R_co]):
    @property
    def fn(self) -> Callable[Concatenate[L, P], R_co]: ...

class AsyncTxIsRefused:
    """Stands for `async def` with a sync `Tx`, which raises: it cannot be called, so its first use is reported."""

class Effect(SyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[Concatenate[Key, P], R_co]: ...

class AsyncEffect(AsyncCall[P, R_co], StepOptions):
    @property
    def fn(self) -> Callable[Concatenate[Key, P], Coroutine[Any, Any, R_co]]: ...

class Submittable(Generic[P, R_co]):
    """What can become a job."""

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]: ...
    async def submit_aio(self, *args: P.args, **kwargs: P.kwargs) -> Job[R_co]: ...
    def submit_many(self, calls: Iterable[tuple[Any, ...]]) -> list[Job[R_co]]: ...
    async def submit_many_aio(self, calls: Iterable[tuple[Any, ...]]) -> list[Job[R_co]]: ...
    def child(self, *args: P.args, **kwargs: P.kwargs) -> Child[R_co]: ...
    def opts(
        self,
        *,
        idempotency_key: str = ...,
        within: object = ...,
        queue: str = ...,
        priority: int = ...,
        delay: Duration = ...,
        deadline: Duration = ...,
        tags: Iterable[str] = ...,
        detached: bool = ...,
    ) -> Self: ...
    def named(self, name: str) -> Self: ...

class Workflow(SyncCall[P, R_co], Submittable[P, R_co]):
    @property
    def fn(self) -> Callable[P, R_co]: ...

class AsyncWorkflow(AsyncCall[P, R_co], Submittable[P, R_co]):
    @property
    def fn(self) -> Callable[P, Coroutine[Any, Any, R_co]]: ...

# --- decorators in their called form ------------------------------------------------------------------------

class StepDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...

class TxDecorator(Protocol):
    @overload
    def __call__(
        self, fn: Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTxStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Tx, P], Coroutine[Any, Any, Any]], /) -> AsyncTxIsRefused: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def __call__(self, fn: Callable[Concatenate[Tx, P], R], /) -> TxStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[L, P], R], /) -> TxStepAs[L, P, R]: ...

class EffectDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]], /) -> AsyncEffect[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def __call__(self, fn: Callable[Concatenate[Key, P], R], /) -> Effect[P, R]: ...

class WorkflowDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...

# --- the application ----------------------------------------------------------------------------------------

class Tally:
    def __init__(self, url: str) -> None: ...
    def bind(self, url: str) -> None: ...
    def work(self) -> None: ...
    def job(self, job_id: str) -> Job[Any]: ...
    def jobs(
        self,
        *,
        tag: str | None = ...,
        workflow: str | None = ...,
        states: Sequence[JobState] = ...,
        after: Job[Any] | None = ...,
        limit: int = ...,
    ) -> list[Job[Any]]: ...
    def send_many(
        self, jobs: Iterable[Job[Any]], name: str, value: object = ..., *, id: str | None = ...
    ) -> list[Delivered]: ...
    async def send_many_aio(
        self, jobs: Iterable[Job[Any]], name: str, value: object = ..., *, id: str | None = ...
    ) -> list[Delivered]: ...
    def on_worker_start(self, fn: Callable[[], R], /) -> Callable[[], R]: ...
    def on_worker_stop(self, fn: Callable[[], R], /) -> Callable[[], R]: ...
    def dead(
        self, *, workflow: str | None = ..., after: Job[Any] | None = ..., limit: int = ...
    ) -> list[Job[Any]]: ...
    @overload
    def step(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def step(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        *,
        name: str = ...,
        retry: Retry = ...,
        timeout: Duration = ...,
        raises: Sequence[type[Exception]] = ...,
    ) -> StepDecorator: ...
    @overload
    def tx(self, fn: Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R]], /) -> AsyncTxStep[P, R]: ...
    @overload
    def tx(self, fn: Callable[Concatenate[Tx, P], Coroutine[Any, Any, Any]], /) -> AsyncTxIsRefused: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def tx(self, fn: Callable[Concatenate[Tx, P], R], /) -> TxStep[P, R]: ...
    @overload
    def tx(self, fn: Callable[Concatenate[L, P], R], /) -> TxStepAs[L, P, R]: ...
    @overload
    def tx(
        self,
        *,
        name: str = ...,
        retry: Retry = ...,
        timeout: Duration = ...,
        raises: Sequence[type[Exception]] = ...,
    ) -> TxDecorator: ...
    @overload
    def effect(self, fn: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]], /) -> AsyncEffect[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def effect(self, fn: Callable[Concatenate[Key, P], R], /) -> Effect[P, R]: ...
    @overload
    def effect(
        self,
        *,
        key: str = ...,
        probe: Callable[[Key], object] = ...,
        name: str = ...,
        retry: Retry = ...,
        timeout: Duration = ...,
        raises: Sequence[type[Exception]] = ...,
    ) -> EffectDecorator: ...
    def remote(
        self,
        destination: str,
        /,
        *,
        ack: Duration = ...,
        lease: Duration = ...,
        name: str = ...,
        retry: Retry = ...,
    ) -> StepDecorator: ...
    @overload
    def workflow(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]  # see COROUTINES_FIRST
    @overload
    def workflow(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...
    @overload
    def workflow(
        self,
        *,
        name: str = ...,
        version: str = ...,
        queue: str = ...,
        idempotent: bool = ...,
    ) -> WorkflowDecorator: ...
    def map(
        self,
        fn: Callable[[A], object],
        items: Iterable[A],
        *,
        then: Callable[[MapSummary], object] = ...,
        chunk: int = ...,
    ) -> Submittable[[], MapSummary]: ...

class Job(Awaitable[R_co], Protocol):
    """One submission of a workflow."""

    @property
    def id(self) -> str: ...
    @property
    def created(self) -> bool: ...
    def result(self, timeout: Duration | None = ...) -> R_co: ...
    def __await__(self) -> Generator[Any, Any, R_co]: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    def send(self, name: str, value: object = ..., *, id: str | None = ...) -> Delivered: ...
    async def send_aio(self, name: str, value: object = ..., *, id: str | None = ...) -> Delivered: ...
    def why(self) -> str: ...
    def history(self) -> list[Event]: ...
    def cancel(self, *, grace: Duration = ...) -> JobState: ...
    def pause(self, why: str = ...) -> object: ...
    async def pause_aio(self, why: str = ...) -> object: ...
    def resume(self) -> object: ...
    async def resume_aio(self) -> object: ...
    def fork(self, *, at: str, version: str | None = ..., fresh_keys: bool = ...) -> Job[R_co]: ...
    async def fork_aio(self, *, at: str, version: str | None = ..., fresh_keys: bool = ...) -> Job[R_co]: ...
    def retry(self) -> Job[R_co]: ...
    async def retry_aio(self) -> Job[R_co]: ...

class Child(Generic[R_co]):
    """A child that is prepared and starts when it is gathered, or waited for alone."""

    def result(self) -> R_co: ...
    def __await__(self) -> Generator[Any, Any, R_co]: ...

class Event:
    """A fact in the history of a job."""

    @property
    def n(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def at(self) -> datetime: ...

# --- what a sync workflow may ask for (async ones: tallystick.aio) ------------------------------------------

@overload
def wait(name: str, type: type[A]) -> A: ...
@overload
def wait(name: str, type: type[A], *, timeout: Duration) -> A | None: ...
def sleep(duration: Duration) -> None: ...
@overload
def gather(a: Startable[A], /, *, fail_fast: bool = ...) -> tuple[A]: ...
@overload
def gather(a: Startable[A], b: Startable[B], /, *, fail_fast: bool = ...) -> tuple[A, B]: ...
@overload
def gather(
    a: Startable[A], b: Startable[B], c: Startable[C], /, *, fail_fast: bool = ...
) -> tuple[A, B, C]: ...

# Four at least, so that fewer never match twice: mypy answers Any where two overloads fit a coroutine.
@overload
def gather(
    a: Startable[A],
    b: Startable[A],
    c: Startable[A],
    d: Startable[A],
    /,
    *more: Startable[A],
    enough: int = ...,
    fail_fast: bool = ...,
) -> tuple[A, ...]: ...
def now() -> datetime: ...
def uuid() -> UUID: ...
def random() -> float: ...
def patched(name: str) -> bool: ...
def again(*args: object, **kwargs: object) -> Never: ...
def thread_map(fn: Callable[[A], R], items: Iterable[A]) -> list[R]: ...
