"""What an effect was declared with: its key, its times, what its errors mean, and what finds its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any

import msgspec

from tallystick.app.values.signature import Signature
from tallystick.core.effects.fresh_keys import key_for
from tallystick.core.effects.requests import Intent
from tallystick.core.effects.rows import EffectRules
from tallystick.core.json_forms.canonical import content_hash
from tallystick.core.limits import PAYLOAD_BYTES_MAX, check_effect_key, check_text
from tallystick.engine.submission import tenant_in
from tallystick.errors import BadInput

if TYPE_CHECKING:
    from tallystick.app.replay.context import WorkflowContext


@dataclass(frozen=True, slots=True)
class EffectSpec:
    """How an effect is called."""

    effect: str
    # The text of the key with the names of arguments in braces, or what makes it of the arguments.
    key: str | Callable[..., str]
    signature: Signature
    rules: EffectRules
    safe_errors: tuple[type[Exception], ...]
    probe: Callable[..., Any] | None

    def intent(self, context: WorkflowContext, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Intent:
        """Return what a call intends: under which key, with which arguments."""
        arguments = self.signature.encode(args, kwargs, for_hash=True)
        check_text(f"the arguments of {self.effect}", arguments, PAYLOAD_BYTES_MAX)
        options = context.segment.claimed.options
        key = check_effect_key(f"key of {self.effect}", self._key(args, kwargs))
        key = key_for(key, options, context.segment.job_id)
        tenant = tenant_in(options)
        printed = content_hash(msgspec.json.decode(arguments))
        return Intent((tenant, self.effect, key), printed, arguments, self.rules.written())

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if isinstance(self.key, str):
            return self.key.format_map(self.signature.bound(args, kwargs))
        return self.key(*args, **kwargs)


def check_template(name: str, key: object, signature: Signature) -> None:
    """Refuse a key that names what the effect does not take, or nothing at all."""
    if callable(key):
        return
    if not isinstance(key, str):
        raise BadInput(f'the key of {name} is a text with names of its arguments: key="{name}:{{order}}"')
    named = {
        field.partition(".")[0].partition("[")[0]
        for _t, field, _s, _c in Formatter().parse(key)
        if field is not None
    }
    if not named:
        raise BadInput(
            f'every call of {name} would have the key {key!r}: name an argument, "{name}:{{order}}"'
        )
    unknown = sorted(named - set(signature.names))
    if unknown:
        raise BadInput(
            f"the key of {name} names {', '.join(unknown)}, and it takes {', '.join(signature.names)}"
        )
