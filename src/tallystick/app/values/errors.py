"""Errors that a step declares: what they carry is kept as JSON, and they are built again from that.

The first run builds them from what is kept too, so that a workflow catches the same error now and on replay.
What cannot be kept, or not be built again, is no reason to lose the failure: then it is a `StepFailed`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tallystick.app.values.annotations import hints_of_class
from tallystick.app.values.codec import Codec, encode
from tallystick.core.limits import RESULT_BYTES_MAX, check_text
from tallystick.engine.failure import Failure

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARGUMENTS = msgspec.json.Decoder(list[Any])


class Carried(NamedTuple):
    """What is kept of an error: its declared fields, or if it has none its arguments; or nothing."""

    fields: dict[str, msgspec.Raw] | None = None
    args: list[Any] | None = None


def carried(error: BaseException) -> Carried:
    """Return what an error carries, as it is kept, or nothing where that cannot be kept whole."""
    what = f"what {type(error).__qualname__} carries"
    try:
        fields = _fields(error)
        given = None if fields else list(_arguments(error))
        text = encode(fields or given, what)
        check_text(what, text, RESULT_BYTES_MAX)
        if given is None:
            return Carried(fields=_FIELDS.decode(text))
        kept = _ARGUMENTS.decode(text)
        # Arguments have no annotations to be given back by, so they are kept if JSON changes nothing.
        return Carried(args=kept) if kept == given else Carried()
    except Exception:  # noqa: BLE001 (the user's own properties and constructors, and types of any kind)
        return Carried()


def rebuilt(kinds: Iterable[type[Exception]], failure: Failure) -> Exception | None:
    """Return the error of a declared class that failed a step, or None if it cannot be built again."""
    for kind in kinds:
        if failure.type == kind.__qualname__:
            try:
                return _built(kind, failure)
            except Exception:  # noqa: BLE001 (as above)
                return None
    return None


def _built(kind: type[Exception], failure: Failure) -> Exception | None:
    if failure.args is not None:
        error = kind(*failure.args)
        # A constructor that makes other arguments of its arguments would tell a tale twice.
        return error if list(_arguments(error)) == failure.args else None
    if failure.fields is None:
        return None
    hints = hints_of_class(kind)
    fields = {
        name: Codec(hints.get(name, Any)).decode(kept, f"{name} of {kind.__qualname__}")
        for name, kept in failure.fields.items()
    }
    error = kind(**fields)
    if failure.message and not str(error):
        # A dataclass says what it was called with by place; called by name it would say nothing.
        object.__setattr__(error, "args", (failure.message,))
    return error


def _fields(error: BaseException) -> dict[str, object]:
    """Return the annotated fields that this error has values of its own for."""
    kind = type(error)
    computed = {one.name for one in getattr(kind, "__dataclass_fields__", {}).values() if not one.init}
    found: dict[str, object] = {}
    for name, hint in hints_of_class(kind).items():
        if typing.get_origin(hint) is typing.ClassVar or hint is typing.ClassVar or name in computed:
            continue
        if name in error.__dict__ or hasattr(type(getattr(kind, name, None)), "__get__"):
            found[name] = getattr(error, name)
    return found


def _arguments(error: BaseException) -> tuple[object, ...]:
    """Return what the class is to be called with to have this error again, as Python's own copies do."""
    return tuple(error.__reduce__()[1])
