"""Effects on a Tally: declared with a key, a time, and what their errors mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tallystick.app.api.declaring import DeclaringSteps
from tallystick.app.api.decorators import EffectDecorator
from tallystick.app.api.retrying import ONCE, Duration, Retry
from tallystick.app.effects.callables import AsyncEffect, Effect
from tallystick.app.effects.probing import probes_of
from tallystick.app.effects.rules import EffectSpec, check_template
from tallystick.app.values.signature import Signature
from tallystick.core.durations import duration_ms
from tallystick.core.effects.rows import EffectRules
from tallystick.defaults import EFFECT_SETTLE, EFFECT_TIMEOUT
from tallystick.engine.sweep import Probe


class DeclaringEffects(DeclaringSteps):
    """What a Tally knows of effects."""

    _effects: dict[str, EffectSpec]

    @property
    def probes(self) -> dict[str, Probe]:
        """Return how a worker finds out what came of its effects that are in doubt."""
        return probes_of(self._effects)

    def effect(
        self,
        *,
        key: str | Callable[..., str],
        name: str | None = None,
        probe: Callable[..., Any] | None = None,
        timeout: Duration = EFFECT_TIMEOUT,
        settle: Duration = EFFECT_SETTLE,
        retry: Retry = ONCE,
        raises: Sequence[type[Exception]] = (),
        safe_errors: Sequence[type[Exception]] = (),
        keep_refusals: bool = False,
    ) -> EffectDecorator:
        """Declare an effect: intent first, called once under its key; in doubt after a crash: never guessed.

        The function takes its `Key` first. `key` names arguments in braces. An async call ends after
        `timeout`; a thread cannot be ended, and is waited for. The `probe` takes what the effect takes and is
        asked `settle` after that. An error of `raises` is a refusal: another job may act anew under the key,
        unless `keep_refusals` gives it the same refusal. One of `safe_errors`, or `NotDone`, says that
        nothing has happened; any other leaves it in doubt.
        """

        def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (the protocol says what comes out)
            spec = self._spec(
                kind="effect", function=function, name=name, retry=retry, timeout=timeout, raises=raises
            )
            assert spec.timeout_ms is not None, "an effect has a time"
            signature = Signature(function, injected=1)
            check_template(spec.name, key, signature)
            about = (spec.timeout_ms, spec.policy.attempts_max, duration_ms(settle))
            rules = EffectRules(*about, probe is not None, keep_refusals)
            effect = EffectSpec(spec.name, key, signature, rules, tuple(safe_errors), probe)
            self._effects[spec.name] = effect
            made = AsyncEffect if spec.is_async else Effect
            return made(self._tally(), replace(spec, effect=effect))

        return decorate
