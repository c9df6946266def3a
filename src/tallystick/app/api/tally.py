"""Tally: the object a program declares its steps and workflows on."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from tallystick.app.api.declaring import check_function, label_of, policy_of
from tallystick.app.api.decorators import StepDecorator, TxDecorator, WorkflowDecorator
from tallystick.app.api.hooks import Hooks
from tallystick.app.api.jobs import Jobs
from tallystick.app.api.retrying import ONCE, Duration, Retry
from tallystick.app.api.runtime import Runtime
from tallystick.app.api.steps import AsyncStep, AsyncTxIsRefused, AsyncTxStep, L, Step, Tx, TxStep, TxStepAs
from tallystick.app.api.submittable import WorkflowSpec
from tallystick.app.api.workflows import AsyncWorkflow, Workflow
from tallystick.app.asking.acts import Acts
from tallystick.app.asking.many import Many
from tallystick.app.effects.declaring import DeclaringEffects
from tallystick.app.effects.resolving import ResolvingKeys
from tallystick.app.effects.rules import EffectSpec
from tallystick.app.remote.protocols import Declaring, RemoteProtocol
from tallystick.app.remote.routing import Routing
from tallystick.app.remote.services import Service
from tallystick.app.remote.steps import DeclaringRemotes
from tallystick.app.replay.context import Inside, current, refuse_inside
from tallystick.app.running.async_tx import AsyncTx
from tallystick.app.running.sealing import PayloadCodec
from tallystick.app.running.twins import twin_of
from tallystick.app.running.tx_parameter import check_async, why_not_on_sqlite
from tallystick.app.running.working import Working
from tallystick.app.scheduling.schedules import DeclaringSchedules
from tallystick.app.scheduling.submit_options import SubmitOptions
from tallystick.app.values.own_types import declare
from tallystick.app.values.signature import Signature, is_local
from tallystick.clock import Clock, SystemClock
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.core.queues.rows import Limits
from tallystick.core.schedules.rows import SchedulePlan
from tallystick.defaults import ATTEMPTS, KEEP_TURNS, QUEUE
from tallystick.engine.retention import prune, retention_ms
from tallystick.engine.trimming import turns_kept
from tallystick.errors import BadInput, DuplicateHandler, Misuse
from tallystick.ids import Ids, SystemIds
from tallystick.store.api import Transaction
from tallystick.store.opening import DEFAULT_URL, check_address, check_keeps, tell_unused

P = ParamSpec("P")
R = TypeVar("R")


class Tally(
    Jobs,
    Many,
    Acts,
    Hooks,
    Declaring,
    DeclaringEffects,
    ResolvingKeys,
    DeclaringRemotes,
    DeclaringSchedules,
    Working,
):
    """A set of steps and workflows on one store. Nothing is opened before it is used."""

    def __init__(
        self,
        url: str | None = None,
        *,
        keep: str | timedelta | None = None,
        keep_turns: int | None = KEEP_TURNS,
        keep_effects: str | timedelta | None = None,
        callback_url: str | None = None,
        payload_codec: PayloadCodec | None = None,
        credential: object | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        """Remember the address; without one it is that of the variable TALLY_URL, or `sqlite:///tally.db`.

        With `keep="30d"` its workers remove jobs that ended longer ago than that; without, jobs stay.
        Of a job that begins `again` and again the newest `keep_turns` turns are kept, with None all of them.
        With `keep_effects` keys of effects that ended longer ago go too, if their jobs are gone.
        `callback_url` is where remote workers reach `tally serve`; TALLYSTICK_CALLBACK_URL overrides it.

        What programs put into jobs (arguments, results, signals, values, errors) is stored as `payload_codec`
        encodes it: two functions of bytes, for instance of a cipher.

        `credential` is for Azure Tables: a connection string, or a credential of `azure-identity`.
        """
        super().__init__()
        self._url = os.environ.get("TALLY_URL") or DEFAULT_URL if url is None else url
        self._keep_ms = None if keep is None else retention_ms(keep)
        self._keep_effects_ms = None if keep_effects is None else retention_ms(keep_effects)
        self._keep_turns = turns_kept(keep_turns)
        self._codec = payload_codec
        self._credential = credential
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._workflows: dict[tuple[str, str], Workflow[..., Any] | AsyncWorkflow[..., Any]] = {}
        self._steps: set[str] = set()
        self._protocols: dict[str, RemoteProtocol] = {}
        self._services: dict[str, Service] = {}
        self._routing: Routing | None = None
        self._callback_url = os.environ.get("TALLYSTICK_CALLBACK_URL") or callback_url
        self._schedules: dict[str, Callable[[], SchedulePlan]] = {}
        self._remotes: dict[str, str] = {}
        self._queues: dict[str, Limits] = {}
        self._effects: dict[str, EffectSpec] = {}
        self._txs: dict[str, Callable[..., Any]] = {}
        self._runtime: Runtime | None = None
        self._opening = threading.Lock()

    @property
    def url(self) -> str:
        """Return the address of the store."""
        return self._url

    @property
    def workflows(self) -> dict[tuple[str, str], Workflow[..., Any] | AsyncWorkflow[..., Any]]:
        """Return what can be submitted here, by name and version."""
        return dict(self._workflows)

    @property
    def keep_ms(self) -> int | None:
        """Return how long its workers keep jobs that have ended, or None for ever."""
        return self._keep_ms

    @property
    def keep_effects_ms(self) -> int | None:
        """Return how long its workers keep keys of effects that have ended, or None for ever."""
        return self._keep_effects_ms

    @property
    def keep_turns(self) -> int | None:
        """Return how many turns of a loop are kept, or None for all."""
        return self._keep_turns

    @property
    def is_working(self) -> bool:
        """Tell whether a worker of this Tally runs in this process."""
        return self._runtime is not None and self._runtime.worker is not None

    def bind(self, url: str, *, clock: Clock | None = None) -> None:
        """Point at another store, before this one was used or after it was closed; a test adds its clock."""
        if self._runtime is not None:
            raise Misuse("this Tally is in use; close it before you bind it to another address")
        self._check_store(url)
        self._url = url
        self._clock = clock or self._clock

    def _check_store(self, url: str) -> None:
        """Refuse a store that cannot carry what was declared here."""
        check_address(url)
        declared: dict[str, Collection[object]] = {
            "workflows": self._workflows,
            "effects": self._effects,
            "schedules": self._schedules,
            "queues": self._queues,
            "removals (keep=)": [] if self._keep_ms is None else [self._keep_ms],
        }
        check_keeps(url, declared)
        for name, function in self._txs.items() if url.startswith("sqlite:") else ():
            if why := why_not_on_sqlite(function):
                raise BadInput(f"{name} cannot run on SQLite: {why}, or use PostgreSQL", step=name)

    def runtime(self, *, create: bool = True) -> Runtime:
        """Return the open store, opening it on first use."""
        runtime = self._runtime
        if runtime is not None:
            return runtime
        with self._opening:
            if self._runtime is None:
                self._check_store(self._url)
                tell_unused(self._url)
                self._runtime = Runtime(
                    self._url,
                    self._clock,
                    self._ids,
                    create=create,
                    codec=self._codec,
                    credential=self._credential,
                )
                self._runtime.effects = self._effects
            return self._runtime

    def close(self) -> None:
        """Stop the worker if there is one, and give everything back; the Tally can be used again."""
        if current.get() is not None:
            raise Misuse("a Tally is not closed inside its own workflows, steps and transactions")
        runtime = self._runtime
        if runtime is None:
            return
        runtime.store.check_may_wait()
        # Until it is closed a running job finds it, and no call opens another one beside it.
        runtime.close()
        with self._opening:
            if self._runtime is runtime:
                self._runtime = None

    close_aio = twin_of(close)

    def codec(self, kind: type[R], encode: Callable[[R], object], decode: Callable[[Any], R]) -> None:
        """Declare how values of a type are kept that is no data of its own: as what, and how they come back.

        It holds for arguments and results of every Tally in this process.
        """
        declare(kind, encode, decode)

    @contextmanager
    def connect(self) -> Iterator[Transaction]:
        """Open a connection for reading your tables, and ours; to write use `transaction`."""
        with self.runtime().store.connect() as connection:
            yield connection

    @contextmanager
    def transaction(self, *, limit: Duration | None = None) -> Iterator[Transaction]:
        """Open a transaction for rows of your own and `submit` with `within=`, durable together.

        It holds the writer while it lasts, so anything else that waits to become durable is refused in this
        thread. After its `limit` (5 s; with a worker in this process never more than a third of its lease) it
        is rolled back, and its next call and its end raise `TxTooLong`.
        """
        refuse_inside("open a transaction", "write in an @app.tx")
        with self.runtime().transaction(limit) as transaction:
            token = current.set(Inside(None, in_tx=True))
            try:
                yield transaction
            finally:
                current.reset(token)

    def prune(self, *, older_than: Duration, limit: int = 100_000) -> int:
        """Remove jobs that ended that long ago, whole and with their keys; return how many are gone."""
        refuse_inside("prune jobs")
        return prune(self.runtime(create=False).committer, duration_ms(older_than), limit)

    prune_aio = twin_of(prune)

    @overload
    def step(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def step(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = None,
        retry: Retry = ONCE,
        timeout: Duration | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> StepDecorator: ...
    def step(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        retry: Retry = ONCE,
        timeout: Duration | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> Any:
        """Declare a step: at least once; the result is kept."""

        def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (the overloads say what comes out)
            spec = self._spec(
                kind="step", function=function, name=name, retry=retry, timeout=timeout, raises=raises
            )
            return (AsyncStep if spec.is_async else Step)(self, spec)

        return decorate if fn is None else decorate(fn)

    @overload
    def tx(self, fn: Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R]], /) -> AsyncTxStep[P, R]: ...
    @overload
    def tx(self, fn: Callable[Concatenate[Tx, P], Coroutine[Any, Any, Any]], /) -> AsyncTxIsRefused: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def tx(self, fn: Callable[Concatenate[Tx, P], R], /) -> TxStep[P, R]: ...
    @overload
    def tx(self, fn: Callable[Concatenate[L, P], R], /) -> TxStepAs[L, P, R]: ...
    @overload
    def tx(
        self, *, name: str | None = None, retry: Retry = ONCE, raises: Sequence[type[Exception]] = ()
    ) -> TxDecorator: ...
    def tx(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        retry: Retry = ONCE,
        raises: Sequence[type[Exception]] = (),
    ) -> Any:
        """Declare a transaction: exactly once, your writes and our marker in one."""

        def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (the overloads say what comes out)
            spec = self._spec(
                kind="tx", function=function, name=name, retry=retry, timeout=None, raises=raises
            )
            if spec.is_async:
                check_async(spec.name, function)
            self._txs[spec.name] = function
            if self._runtime is not None:
                self._check_store(self._url)
            return (AsyncTxStep if spec.is_async else TxStep)(self, spec)

        return decorate if fn is None else decorate(fn)

    @overload
    def workflow(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def workflow(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...
    @overload
    def workflow(
        self,
        *,
        name: str | None = None,
        version: str = "",
        queue: str = QUEUE,
        retry: Retry = ONCE,
        attempts: int = ATTEMPTS,
        idempotent: bool = False,
        deadline: Duration | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> WorkflowDecorator: ...
    def workflow(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        version: str = "",
        queue: str = QUEUE,
        retry: Retry = ONCE,
        attempts: int = ATTEMPTS,
        idempotent: bool = False,
        deadline: Duration | None = None,
        raises: Sequence[type[Exception]] = (),
    ) -> Any:
        """Declare a workflow: a plain function whose calls of steps survive a crash.

        `attempts` is how many workers in a row may die over it without any progress before the job is
        given up. An error of a class in `raises` is built again where the result is asked for.
        """

        def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (the overloads say what comes out)
            label = label_of("workflow", function, name)
            check_function(function)
            if (label, version) in self._workflows:
                raise DuplicateHandler(
                    f"there is a workflow {label!r} already; give one of them another name= or version=",
                    name=label,
                )
            spec = WorkflowSpec(
                name=label,
                version=check_name("version", version) if version != "" else "",
                function=function,
                signature=Signature(function),
                policy=policy_of(retry),
                attempts_max=attempts,
                raises=tuple(raises),
            )
            options = SubmitOptions(
                queue=queue,
                idempotent=idempotent,
                deadline_ms=None if deadline is None else duration_ms(deadline),
            )
            is_async = inspect.iscoroutinefunction(function)
            made: Workflow[..., Any] | AsyncWorkflow[..., Any] = (AsyncWorkflow if is_async else Workflow)(
                self, spec, options
            )
            if is_local(function):
                spec.signature.check()
            self._workflows[label, version] = made
            return made

        return decorate if fn is None else decorate(fn)

    def _tally(self) -> Tally:
        return self
