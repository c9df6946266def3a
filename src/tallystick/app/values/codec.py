"""Values across a crash: JSON, by annotation, the same on the first run as on replay.

What a function returns is encoded and decoded at once, so that a workflow never sees a tuple today and a
list after a restart. A plain scalar that already has its annotated type skips the way back.
"""

from __future__ import annotations

import inspect
import json
import math
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Never, NoReturn

import msgspec

from tallystick.app.values.own_types import adapter_of, from_foreign, names_models, to_foreign
from tallystick.core.json_forms.sealed import SEALED_BEGIN, SEALED_WHY
from tallystick.core.limits import RESULT_BYTES_MAX, check_text
from tallystick.errors import BadValue, PayloadSealed

_SCALARS: Final = frozenset({int, str, bool, type(None)})
_PLAIN: Final = frozenset[type]({int, str, bool, type(None), float})
# What a function says of its result that never returns one, and what says nothing: both keep data as it is.
_UNTYPED: Final = (object, Never, NoReturn)
_UNIONS: Final = (typing.Union, types.UnionType)


def _but_raw(value: object) -> object:
    return None if isinstance(value, msgspec.Raw) else from_foreign(value)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=from_foreign)
_TO_STRICT: Final = json.JSONEncoder(allow_nan=False).encode


def encode(value: object, what: str) -> str:
    """Return a value as JSON text; `what` names it in the error."""
    try:
        return _text_of(value)
    except Exception as error:  # what a model raises that is asked for its data can be anything
        raise _cannot_be_kept(what, value, error) from error


def _text_of(value: object) -> str:
    text = _ENCODER.encode(value).decode()
    # It writes null for a float that JSON has not; only a text with a null in it can hide one.
    if "null" in text and value is not None:
        _refuse_endless(value)
    return text


def _cannot_be_kept(what: str, value: object, error: Exception) -> BadValue:
    return BadValue(
        f"{what} cannot be kept as JSON ({str(error) or type(value).__name__}); "
        "use plain data, dataclasses, Structs or pydantic models"
    )


def _refuse_endless(value: object) -> None:
    """Refuse NaN and the infinities, wherever they are."""
    if type(value) is dict:
        for member in value.values():
            if type(member) not in _SCALARS:
                break
        else:
            return  # most that come here are arguments with a None among them
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_but_raw)
    try:
        _TO_STRICT(plain)
    except ValueError:
        raise ValueError("JSON has neither NaN nor infinities: write None or text") from None


def decodable(annotation: Any) -> Any:  # noqa: ANN401 (an annotation can be anything)
    """Return the annotation as msgspec understands it."""
    return Any if annotation in _UNTYPED else annotation


def comes_back(annotation: Any) -> frozenset[type]:  # noqa: ANN401 (an annotation can be anything)
    """Return the plain types whose values this annotation gives back as they were, whatever they are.

    >>> sorted(kind.__name__ for kind in comes_back(str | None))
    ['NoneType', 'str']
    """
    members = typing.get_args(annotation) if typing.get_origin(annotation) in _UNIONS else (annotation,)
    if Any in members or any(member in _UNTYPED for member in members):
        return _PLAIN
    return frozenset(members) if _PLAIN.issuperset(members) else frozenset()


def _decoder(annotation: Any) -> Callable[[Any], Any]:  # noqa: ANN401 (an annotation can be anything)
    """Return what reads values of an annotation; unions of models are told apart by pydantic."""
    try:
        return msgspec.json.Decoder(decodable(annotation), dec_hook=to_foreign).decode
    except TypeError:
        adapter = adapter_of(annotation) if names_models(annotation) else None
        if adapter is None:
            raise
        validate = adapter.validate_json
        return lambda text: validate(bytes(text) if isinstance(text, msgspec.Raw) else text)


class Codec:
    """How values of one annotation are kept."""

    __slots__ = ("_annotation", "_decode")

    def __init__(self, annotation: Any, what: str = "a value") -> None:  # noqa: ANN401 (an annotation can be anything)
        """Prepare for one annotation; `Any` and `object` keep plain data as it is.

        An annotation by which nothing can be given back is refused; `what` names it in the error.
        """
        self._annotation = annotation
        try:
            self._decode = _decoder(annotation)
        except Exception as error:
            raise BadValue(
                f"{what} cannot be given back as {inspect.formatannotation(annotation)}: {error}; annotate "
                "types that JSON can tell apart (Structs of a union by a tag=), or Any for plain data"
            ) from error

    def returned(self, value: object, name: str) -> tuple[str, Any]:
        """Return the text that is kept of what a function returned, and the value that replay will see."""
        try:
            text = _text_of(value)
        except Exception as error:  # as above
            raise _cannot_be_kept(f"what {name} returned", value, error) from error
        # No character takes more than four bytes: most texts need not be measured.
        if len(text) * 4 > RESULT_BYTES_MAX:
            check_text(f"result of {name}", text, RESULT_BYTES_MAX)
        kind = type(value)
        if kind is self._annotation and (kind in _SCALARS or (kind is float and math.isfinite(value))):  # type: ignore[arg-type]  # it is a float here
            return text, value
        return text, self.decode(text, f"what {name} returned")

    def decode(self, text: str | msgspec.Raw, what: str) -> Any:  # noqa: ANN401 (the annotation says what it is)
        """Return the value behind a text."""
        # As `is_sealed` tells; without a call, because every recorded value comes by here.
        if isinstance(text, str) and text.startswith(SEALED_BEGIN):
            raise PayloadSealed(f"{what} is sealed, and this program cannot open it: {SEALED_WHY}")
        try:
            return self._decode(text)
        except Exception as error:  # what a class raises that is made of its data can be anything
            raise BadValue(
                f"{what} does not fit its annotation {inspect.formatannotation(self._annotation)}: {error}"
            ) from error
