"""Remote steps as users hold them: a signature here, the work in a service without access to the store."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar

from tallystick.app.api.declaring import policy_of
from tallystick.app.api.retrying import Duration, Retry
from tallystick.app.api.steps import AsyncStep, Step, StepCallable
from tallystick.app.remote.calls import RemoteCall, call_remote, call_remote_async
from tallystick.app.replay.context import WorkflowContext, current
from tallystick.core.durations import duration_ms
from tallystick.core.remote.policy import StepTimes
from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, OutsideWorkflow

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

# What a function does that does nothing: `...`, `pass`, a docstring; as a coroutine too.
_NOTHING: Final = frozenset(
    {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "RETURN_GENERATOR", "POP_TOP"}
    | {"COPY_FREE_VARS", "CALL_INTRINSIC_1", "RERAISE", "CACHE"}
)


class _RemoteCallable(StepCallable):
    """What both colours of remote steps share."""

    def opts(  # type: ignore[override]  # a remote step has other times than one that runs here
        self, *, retry: Retry | None = None, ack: Duration | None = None, lease: Duration | None = None
    ) -> Self:
        """Return this step with other options."""
        spec = self._spec
        assert spec.remote is not None, "a remote step has rules"
        times = spec.remote.times
        ack_ms = times.ack_ms if ack is None else duration_ms(ack)
        lease_ms = times.lease_ms if lease is None else duration_ms(lease)
        changed = times_of(spec.name, ack_ms, lease_ms, times.retry if retry is None else tries_of(retry))
        return type(self)(self._app, replace(spec, remote=replace(spec.remote, times=changed)))

    def _context(self, *, from_async: bool) -> WorkflowContext:
        """Return the workflow that makes this call; there is no other place for it."""
        name = self._spec.name
        context = None if current.get() is None else super()._context(from_async=from_async)
        if context is None:
            raise OutsideWorkflow(
                f"{name} is done by a remote worker, and only a workflow can wait for it: call it in the "
                "body of a workflow",
                step=name,
            )
        return context

    def _call(self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated by the user)
        return call_remote(context, self._spec, args, kwargs)

    def _call_async(
        self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        name = self._spec.name
        occurrence = context.segment.number(name)
        call = call_remote_async(context, self._spec, occurrence, args, kwargs)
        context.made[name, occurrence] = call
        return call


class Remote(_RemoteCallable, Step[P, R_co], Generic[P, R_co]):
    """A step that a remote worker does: called in sync workflows, awaited with `aio` in async ones."""

    def later(self, *args: P.args, **kwargs: P.kwargs) -> RemoteCall[R_co]:
        """Prepare a call for `gather`, which asks for several at once in a sync workflow."""
        return RemoteCall(self._spec, args, kwargs)


class AsyncRemote(_RemoteCallable, AsyncStep[P, R_co], Generic[P, R_co]):
    """A step that a remote worker does, for async workflows."""


def times_of(name: str, ack_ms: int, lease_ms: int, retry: RetryPolicy | None) -> StepTimes:
    """Return how long a remote worker has, and how often the step is tried."""
    if ack_ms <= 0 or lease_ms <= 0:
        raise BadInput(f"step {name} has no time: give ack and lease more than nothing")
    return StepTimes(ack_ms, lease_ms, retry)


def tries_of(retry: Retry) -> RetryPolicy:
    """Return how often and how soon a remote step is tried again; for which errors, its worker says."""
    policy = policy_of(retry)
    if policy.retryable != Retry().policy.retryable:
        raise BadInput(
            "the remote worker says whether its failure is worth another try (RETRYABLE): leave out on="
        )
    return policy


def check_body(name: str, function: Callable[..., Any]) -> None:
    """Refuse a body that does something: it is never called."""
    try:
        code = inspect.unwrap(function).__code__
    except AttributeError:
        raise BadInput(f"{name} is not a function: write def {name}(...): ...") from None
    used = {each.opname for each in dis.get_instructions(code)}
    returns = {
        each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_CONST", "RETURN_CONST")
    }
    refuses = "RAISE_VARARGS" in used and set(code.co_names) <= {"NotImplementedError"}
    if refuses or (used <= _NOTHING and returns <= {None}):
        return
    raise BadInput(
        f"{name} is done by a remote worker, so its body would never run: write `...` or "
        "`raise NotImplementedError` there, and declare a step for what is to run here"
    )
