"""A function's parameters and result as data: bound by name, kept as JSON, given back by annotation."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from tallystick.app.values import Codec, encode
from tallystick.errors import BadValue

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Signature:
    """What a user's function takes and returns; annotations are looked up when first needed."""

    def __init__(self, function: Callable[..., Any], *, injected: int = 0) -> None:
        """Leave out the first `injected` parameters: those are ours to give."""
        self._function = function
        self._name = function.__name__
        whole = inspect.signature(function)
        parameters = list(whole.parameters.values())[injected:]
        self._signature = whole.replace(parameters=parameters)

    @cached_property
    def result(self) -> Codec:
        """Return how the result is kept."""
        return Codec(self._hints.get("return", Any))

    def encode(self, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
        """Bind a call by name and return it as JSON; defaults are not filled in."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadValue(f"{self._name}{self._signature} cannot be called like this: {error}") from None
        return encode(bound.arguments, f"the arguments of {self._name}")

    def decode(self, payload: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a kept call."""
        data = msgspec.json.decode(payload)
        unknown = set(data) - set(self._signature.parameters)
        if unknown:
            raise BadValue(f"{self._name}{self._signature} has no parameter {', '.join(sorted(unknown))}")
        bound = self._signature.bind_partial()
        for name, parameter in self._signature.parameters.items():
            if name in data:
                bound.arguments[name] = self._given(parameter, data[name])
        missing = [
            name
            for name, parameter in self._signature.parameters.items()
            if name not in data and parameter.default is parameter.empty and parameter.kind not in _VARIADIC
        ]
        if missing:
            raise BadValue(
                f"{self._name}{self._signature} needs {', '.join(missing)}, which the job does not have"
            )
        return list(bound.args), dict(bound.kwargs)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self._function, include_extras=True)
        except NameError:
            # Names that exist only for type checkers: keep plain data as it is.
            return {}

    def _given(self, parameter: inspect.Parameter, value: Any) -> Any:  # noqa: ANN401 (as annotated)
        annotation = self._hints.get(parameter.name, Any)
        codec = Codec(annotation)
        what = f"the argument {parameter.name} of {self._name}"
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return tuple(codec.decode(msgspec.json.encode(one).decode(), what) for one in value)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return {key: codec.decode(msgspec.json.encode(one).decode(), what) for key, one in value.items()}
        if type(value) is annotation and annotation in (int, str, bool):
            return value
        return codec.decode(msgspec.json.encode(value).decode(), what)
