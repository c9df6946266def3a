"""Steps and transactions as users hold them: plain functions outside, durable calls inside a workflow."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar

from tallystick.app.api.declaring import policy_of, timeout_ms
from tallystick.app.api.retrying import Duration, Retry
from tallystick.app.replay.async_drivers import drive_async
from tallystick.app.replay.call_drivers import drive
from tallystick.app.replay.calls import StepSpec, call_step
from tallystick.app.replay.context import Inside, WorkflowContext, current
from tallystick.app.running.async_tx import AsyncTx
from tallystick.core.limits import check_name
from tallystick.errors import Misuse, OutsideWorkflow, WrongColour
from tallystick.store.api import Transaction

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy.orm import Session

    from tallystick.app.api.tally import Tally

# What a tx on PostgreSQL may take its transaction as.
L = TypeVar("L", bound="Tx | psycopg.Connection[Any] | Session")
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Tx(Transaction):
    """The transaction that carries the user's writes and the marker of the step."""


class StepCallable:
    """What steps of all kinds share: a specification, and where they were declared."""

    def __init__(self, app: Tally, spec: StepSpec) -> None:
        self._app = app
        self._spec = spec
        self.__name__ = spec.name
        self.__doc__ = spec.function.__doc__
        self.__wrapped__ = spec.function

    def opts(self, *, retry: Retry | None = None, timeout: Duration | None = None) -> Self:
        """Return this step with other options."""
        spec = self._spec
        if retry is not None:
            spec = replace(spec, policy=policy_of(retry))
        if timeout is not None:
            spec = replace(spec, timeout_ms=timeout_ms(timeout))
        return type(self)(self._app, spec)

    def named(self, name: str) -> Self:
        """Return this step under a name of its own, so that parallel calls can be told apart on replay."""
        return type(self)(
            self._app,
            replace(self._spec, name=check_name("step", f"{self._spec.name}.{name}"), named=True),
        )

    def _context(self, *, from_async: bool) -> WorkflowContext | None:
        """Return the workflow that makes this call, or None where the call is a plain one."""
        context = current.get()
        if context is None:
            if self._app.is_working:
                raise OutsideWorkflow(
                    f"{self._spec.name} was called in a worker process without a workflow around it, so it "
                    "would not be durable. In threads of your own use tallystick.thread_map or "
                    f"contextvars.copy_context(); for the plain function write {self._spec.name}.fn(...)",
                    step=self._spec.name,
                )
            return None
        if isinstance(context, Inside):
            if context.in_tx or self._spec.kind != "step":
                raise Misuse(
                    f"{self._spec.name} cannot be called inside a step or transaction, only in a workflow"
                )
            return None
        if context.is_async is not from_async:
            raise self._wrong_colour(context)
        return context

    def _wrong_colour(self, context: WorkflowContext) -> WrongColour:
        name = self._spec.name
        if context.is_async:
            return WrongColour(
                f"{name} is sync and would block the event loop; write `await {name}.aio(...)`"
            )
        return WrongColour(
            f"{name} is async; a sync workflow cannot wait for it. Make the workflow `async def`"
        )

    def _call(self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated by the user)
        occurrence = context.segment.number(self._spec.name)
        return drive(context, self._spec, call_step(context, self._spec, occurrence, args, kwargs))

    def _call_async(
        self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        spec = self._spec
        occurrence = context.segment.number(spec.name)
        call = drive_async(context, spec, call_step(context, spec, occurrence, args, kwargs))
        context.made[spec.name, occurrence] = call
        return call

    def _outside(self) -> NoReturn:
        name = self._spec.name
        raise OutsideWorkflow(
            f"{name} needs the transaction that a workflow gives it; in a test call {name}.fn(db, ...)",
            step=name,
        )


class Step(StepCallable, Generic[P, R_co]):
    """A sync step: at least once, and its result is kept."""

    @property
    def fn(self) -> Callable[P, R_co]:
        """Return the original function."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it: durably in a sync workflow, plainly elsewhere."""
        context = self._context(from_async=False)
        if context is None:
            value: R_co = self._spec.function(*args, **kwargs)
            return value
        return self._call(context, args, kwargs)  # type: ignore[no-any-return]  # the codec gives what is annotated

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in an async workflow; the function runs in a thread."""
        context = self._context(from_async=True)
        if context is None:
            return _plainly(self._spec.function, *args, **kwargs)
        return self._call_async(context, args, kwargs)


class AsyncStep(StepCallable, Generic[P, R_co]):
    """An async step: at least once, and its result is kept."""

    @property
    def fn(self) -> Callable[P, Coroutine[Any, Any, R_co]]:
        """Return the original function."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it: durably in an async workflow, plainly elsewhere."""
        context = current.get()
        if type(context) is not WorkflowContext or not context.is_async:
            context = self._context(from_async=True)
        if context is None:
            return self._spec.function(*args, **kwargs)  # type: ignore[no-any-return]  # as declared
        return self._call_async(context, args, kwargs)


class TxStepAs(StepCallable, Generic[L, P, R_co]):
    """A transaction: exactly once, the user's rows and the marker together; it is taken as an `L`."""

    @property
    def fn(self) -> Callable[Concatenate[L, P], R_co]:
        """Return the original function, which takes a transaction first."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it in a sync workflow."""
        context = self._context(from_async=False) or self._outside()
        return self._call(context, args, kwargs)  # type: ignore[no-any-return]  # as above

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in an async workflow; the function runs in a thread."""
        context = self._context(from_async=True) or self._outside()
        return self._call_async(context, args, kwargs)


class TxStep(TxStepAs[Tx, P, R_co], Generic[P, R_co]):
    """A transaction whose function takes it as a `Tx`."""


class AsyncTxStep(StepCallable, Generic[P, R_co]):
    """A transaction whose function is a coroutine, for PostgreSQL."""

    @property
    def fn(self) -> Callable[Concatenate[AsyncTx, P], Coroutine[Any, Any, R_co]]:
        """Return the original function, which takes a transaction first."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in an async workflow."""
        context = self._context(from_async=True) or self._outside()
        return self._call_async(context, args, kwargs)


class AsyncTxIsRefused:
    """Stands, for type checkers, for an `async def` tx with a `Tx`: that is refused."""


async def _plainly(function: Callable[P, R_co], /, *args: P.args, **kwargs: P.kwargs) -> R_co:
    """Call a function outside of a workflow when it is awaited."""
    return function(*args, **kwargs)
