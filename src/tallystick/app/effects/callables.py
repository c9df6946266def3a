"""Effects as users hold them: a function that reaches outside, called in the body of a workflow."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar

import msgspec

from tallystick.app.api.declaring import policy_of, timeout_ms
from tallystick.app.api.retrying import Duration, Retry
from tallystick.app.api.steps import StepCallable
from tallystick.app.effects.answers import Key
from tallystick.app.effects.calls import TAKE, call_effect, taken, taken_async
from tallystick.app.replay.async_drivers import drive_async
from tallystick.app.replay.call_drivers import drive
from tallystick.app.replay.context import WorkflowContext
from tallystick.errors import OutsideWorkflow

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _EffectCallable(StepCallable):
    """What both colours of effects share."""

    def opts(self, *, retry: Retry | None = None, timeout: Duration | None = None) -> Self:
        """Return this effect with other options."""
        spec = self._spec
        assert spec.effect is not None, "an effect has rules"
        rules = spec.effect.rules
        if retry is not None:
            spec = replace(spec, policy=policy_of(retry))
            rules = msgspec.structs.replace(rules, tries=spec.policy.attempts_max)
        if timeout is not None:
            spec = replace(spec, timeout_ms=timeout_ms(timeout))
            rules = msgspec.structs.replace(rules, timeout_ms=spec.timeout_ms)
        assert spec.effect is not None, "as above"
        return type(self)(self._app, replace(spec, effect=replace(spec.effect, rules=rules)))

    def _call(self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 (as annotated by the user)
        spec, occurrence = self._spec, context.segment.number(self._spec.name)
        value = drive(context, spec, call_effect(context, spec, occurrence, args, kwargs))
        return taken(context, spec, occurrence) if value is TAKE else value

    def _call_async(
        self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        occurrence = context.segment.number(self._spec.name)
        call = self._awaited(context, occurrence, args, kwargs)
        context.made[self._spec.name, occurrence] = call
        return call

    async def _awaited(
        self, context: WorkflowContext, occurrence: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # noqa: ANN401 (as annotated by the user)
        spec = self._spec
        value = await drive_async(context, spec, call_effect(context, spec, occurrence, args, kwargs))
        return await taken_async(context, spec, occurrence) if value is TAKE else value

    def _outside(self) -> NoReturn:
        name = self._spec.name
        raise OutsideWorkflow(
            f'{name} needs the key that a workflow gives it; in a test call {name}.fn(Key("..."), ...)',
            step=name,
        )


class Effect(_EffectCallable, Generic[P, R_co]):
    """A sync effect: intent first, called once, never guessed."""

    @property
    def fn(self) -> Callable[Concatenate[Key, P], R_co]:
        """Return the original function, which takes its key first."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it in a sync workflow."""
        context = self._context(from_async=False) or self._outside()
        return self._call(context, args, kwargs)  # type: ignore[no-any-return]  # the codec gives what is annotated

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in an async workflow; the function runs in a thread."""
        context = self._context(from_async=True) or self._outside()
        return self._call_async(context, args, kwargs)


class AsyncEffect(_EffectCallable, Generic[P, R_co]):
    """An async effect: intent first, called once, never guessed."""

    @property
    def fn(self) -> Callable[Concatenate[Key, P], Coroutine[Any, Any, R_co]]:
        """Return the original function, which takes its key first."""
        return self._spec.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in an async workflow."""
        context = self._context(from_async=True) or self._outside()
        return self._call_async(context, args, kwargs)
