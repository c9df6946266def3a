"""What the decorators of a Tally (step, tx, effect, remote, workflow) give back, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tallystick.app.api.steps import AsyncStep, AsyncTxIsRefused, AsyncTxStep, L, Step, Tx, TxStep, TxStepAs
from tallystick.app.api.workflows import AsyncWorkflow, Workflow
from tallystick.app.effects.answers import Key
from tallystick.app.effects.callables import AsyncEffect, Effect
from tallystick.app.remote.callables import AsyncRemote, Remote
from tallystick.app.running.async_tx import AsyncTx

P = ParamSpec("P")
R = TypeVar("R")


class StepDecorator(Protocol):
    """`@app.step(...)` with options."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...


class TxDecorator(Protocol):
    """`@app.tx(...)` with options."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTxStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Tx, P], Coroutine[Any, Any, Any]], /) -> AsyncTxIsRefused: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[Concatenate[Tx, P], R], /) -> TxStep[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[L, P], R], /) -> TxStepAs[L, P, R]: ...


class RemoteDecorator(Protocol):
    """`@app.remote("service", ...)`."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncRemote[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Remote[P, R]: ...


class EffectDecorator(Protocol):
    """`@app.effect(key=...)`."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]], /) -> AsyncEffect[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[Concatenate[Key, P], R], /) -> Effect[P, R]: ...


class WorkflowDecorator(Protocol):
    """`@app.workflow(...)` with options."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...
