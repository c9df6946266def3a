"""Probes as workers ask them: with the key and the arguments of the call, and within its time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tallystick.app.effects.answers import DidNotHappen, Happened, Key, Unknown
from tallystick.app.effects.rules import EffectSpec
from tallystick.app.running.daemon_threads import run_in_daemon_thread
from tallystick.app.running.user_exceptions import contained
from tallystick.core.effects.requests import Says
from tallystick.core.effects.rows import EffectRow
from tallystick.engine.sweep import Probe, Said
from tallystick.errors import BadValue


def probes_of(effects: Mapping[str, EffectSpec]) -> dict[str, Probe]:
    """Return how the probes of these effects are asked, of those that have one."""
    return {
        name: Probe(partial(_asking, effect), effect.rules.lease_ms)
        for name, effect in effects.items()
        if effect.probe is not None
    }


def _asking(effect: EffectSpec, row: EffectRow) -> Callable[[], Any]:
    """Return what asks a probe for one effect: with all that its call was given."""
    assert effect.probe is not None, "only those are asked"
    args, kwargs = effect.signature.decode(row.arguments)
    ask = partial(effect.probe, Key(row.key), *args, **kwargs)
    seconds = effect.rules.timeout_ms / 1000
    if inspect.iscoroutinefunction(effect.probe):

        async def asked() -> Said:
            return _said(effect, await asyncio.wait_for(ask(), seconds))

        return asked
    # Python cannot end a thread: one that takes too long may go on, and what it says then is dropped.
    return lambda: _said(effect, run_in_daemon_thread(partial(contained, ask)).result(seconds).value())


def _said(effect: EffectSpec, answer: object) -> Said:
    if isinstance(answer, Happened):
        text, _value = effect.signature.result.returned(answer.result, effect.effect)
        return Said(Says.HAPPENED, text)
    if answer is DidNotHappen or isinstance(answer, DidNotHappen):
        return Said(Says.DID_NOT_HAPPEN)
    if answer is Unknown or isinstance(answer, Unknown):
        why = answer.why if isinstance(answer, Unknown) else ""
        return Said(Says.UNKNOWN, None, f"its probe cannot tell: {why}" if why else None)
    raise BadValue(
        f"the probe of {effect.effect} returned {answer!r}: return Happened(result), DidNotHappen() or "
        "Unknown()"
    )
