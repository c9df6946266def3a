"""Checks at the declaration that a function can be a step, a transaction or a workflow."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from tallystick.app.api.retrying import Duration, Retry
from tallystick.app.replay.calls import StepSpec
from tallystick.app.running.tx_parameter import library_type
from tallystick.app.values.signature import Signature, is_local, own_name
from tallystick.core.durations import duration_ms
from tallystick.core.limits import check_name
from tallystick.core.retry import RetryPolicy
from tallystick.errors import BadInput, BadName, DuplicateHandler

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

# What functions take first that is ours to give.
_FIRST: Final = {"tx": "db: Tx", "effect": "key: Key"}


def label_of(kind: str, function: Callable[..., Any], name: str | None) -> str:
    """Return the name of what is declared: the one that is given, or that of its function."""
    if name:
        return check_name(kind, name)
    own = own_name(function)
    try:
        return check_name(kind, own)
    except BadName as error:
        raise BadName(f"{error}; or give it a name=", **error.fields) from None


def check_function(function: Callable[..., Any], *, takes_first: str = "") -> None:
    """Refuse a function that could not be called, or whose result could not be kept."""
    name = getattr(function, "__name__", "it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(f"{name} is a generator, and what it yields is not kept: return a list")
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return  # what it is instead of a function is said where its arguments are looked at
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if owner and not owner.endswith("<locals>") and parameters[:1] in (["self"], ["cls"]):
        raise BadInput(
            f"{name} is a method, and a job does not keep its object: declare a function, and give it "
            "what it needs"
        )
    if takes_first and not parameters:
        what = "key" if takes_first.startswith("key") else "transaction"
        raise BadInput(f"{name} takes no {what}: write def {name}({takes_first}, ...), or declare a step")


def policy_of(retry: object) -> RetryPolicy:
    """Return how something is tried again."""
    if not isinstance(retry, Retry):
        raise BadInput(f"retry={retry!r} is not a Retry: write retry=Retry(3) for three tries in all")
    return retry.policy


def timeout_ms(timeout: Duration | None) -> int | None:
    """Return how long a step may take, or None for as long as it likes."""
    if timeout is None:
        return None
    ms = duration_ms(timeout)
    if ms <= 0:
        raise BadInput(f"timeout={timeout!r} leaves no time at all; leave it out for no limit")
    return ms


class DeclaringSteps(ABC):
    """The part of a Tally on which every kind of step is declared."""

    _steps: set[str]

    @abstractmethod
    def _tally(self) -> Tally:
        """Return itself."""

    def _spec(
        self,
        *,
        kind: str,
        function: Callable[..., Any],
        name: str | None,
        retry: Retry,
        timeout: Duration | None,
        raises: Sequence[type[Exception]],
    ) -> StepSpec:
        """Return what calls of a step need to know, and take its name."""
        label = label_of("step", function, name)
        check_function(function, takes_first=_FIRST.get(kind, ""))
        if label in self._steps:
            raise DuplicateHandler(
                f"there is a step {label!r} already; give one of them another name=", name=label
            )
        self._steps.add(label)
        signature = Signature(function, injected=1 if kind in _FIRST else 0)
        if is_local(function):
            signature.check("return")
        return StepSpec(
            name=label,
            kind=kind,
            function=function,
            is_async=inspect.iscoroutinefunction(function),
            policy=policy_of(retry),
            timeout_ms=timeout_ms(timeout),
            raises=tuple(raises),
            codec=partial(getattr, signature, "result"),
            lends=cache(lambda: library_type(function)) if kind == "tx" else None,
        )
