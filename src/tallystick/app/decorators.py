"""What `@app.step`, `@app.tx` and `@app.workflow` with options give back, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tallystick.app.steps import AsyncStep, Step, Tx, TxStep
from tallystick.app.workflows import AsyncWorkflow, Workflow

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

    def __call__(self, fn: Callable[Concatenate[Tx, P], R], /) -> TxStep[P, R]:
        """Declare the function."""
        ...


class WorkflowDecorator(Protocol):
    """`@app.workflow(...)` with options."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncWorkflow[P, R]: ...  # type: ignore[overload-overlap]  # coroutines are the special case
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Workflow[P, R]: ...
