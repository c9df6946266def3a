"""A function's parameters and result as data: bound by name, kept as JSON, given back by annotation."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from tallystick.app.values.annotations import UnknownAnnotation, hints_of_function
from tallystick.app.values.codec import Codec, comes_back, decodable, encode
from tallystick.app.values.content_hash import settled
from tallystick.app.values.own_types import HIDDEN, is_secret, to_foreign
from tallystick.app.values.round_trip import difference
from tallystick.errors import BadInput, BadValue

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def own_name(function: Callable[..., Any]) -> str:
    """Return the name that a function has, where it was given none."""
    if isinstance(function, functools.partial):
        raise BadInput(f"a partial of {_inner(function).__name__} has no name of its own; give it a name=")
    return str(_inner(function).__name__)


def is_local(function: Callable[..., Any]) -> bool:
    """Tell whether a function is defined in another: what its annotations do not find now they never will."""
    return "<locals>" in getattr(_inner(function), "__qualname__", "")


def _inner(function: Callable[..., Any]) -> Any:  # noqa: ANN401 (a function, or what is called like one)
    """Return what a partial is one of; what is no function has neither name nor colour, and is refused."""
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__name__"):
        raise BadInput(f"a {type(function).__qualname__} is not a function; write one around it")
    return function


class Signature:
    """What a user's function takes and returns; annotations are looked up when first needed."""

    def __init__(self, function: Callable[..., Any], *, injected: int = 0) -> None:
        """Leave out the first `injected` parameters: those are ours to give."""
        self._function = function
        self._name = _inner(function).__name__
        try:
            whole = inspect.signature(function)
        except ValueError as error:
            raise BadInput(f"{self._name} does not say what it takes; write a function around it") from error
        parameters = list(whole.parameters.values())[injected:]
        self._signature = whole.replace(parameters=parameters)
        rest = [one.name for one in parameters if one.kind is inspect.Parameter.VAR_POSITIONAL]
        self._rest = rest[0] if rest else ""

    @cached_property
    def result(self) -> Codec:
        """Return how the result is kept."""
        return Codec(self._hint("return"), f"what {self._name} returns")

    def encode(self, args: tuple[object, ...], kwargs: dict[str, object], *, for_hash: bool = False) -> str:
        """Bind a call by name, with what its defaults are now, and return it as JSON.

        An argument that would reach the function as another value than this is refused. What is hashed too
        has its sets in one order: its row then tells what was hashed.
        """
        bound = self._bound(args, kwargs)
        payload = self._encoded(settled(bound) if for_hash else bound)
        plain = self._plain
        for name, value in bound.items():
            if type(value) not in plain[name]:
                self._check_return(bound, payload)
                break
        return payload

    def encode_data(self, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
        """Bind a call whose arguments are data, as a command line has them, and return it as JSON."""
        return self._encoded(self._bound(args, kwargs))

    def _encoded(self, bound: object) -> str:
        return encode(bound, f"the arguments of {self._name}")

    def _check_return(self, bound: dict[str, object], payload: str) -> None:
        """Refuse arguments that do not come back from their JSON as they were given."""
        kept = _FIELDS.decode(payload)
        for name, parameter, decoded in self._plan:
            if name not in bound or type(bound[name]) in self._plain[name]:
                continue
            given = bound[name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                given = list(given)  # type: ignore[call-overload]  # Python collects them in a tuple
            try:
                found = difference(given, decoded(kept[name]), name)
            except RecursionError:
                raise BadValue(f"the argument {name} of {self._name} is nested too deep to be kept") from None
            if found is not None:
                raise self._changed(*found)

    def _changed(self, path: str, value: object) -> BadValue:
        kind = type(value).__qualname__
        if is_secret(value):
            return BadValue(f"the argument {path} of {self._name} is a {kind}: {HIDDEN}", path=path)
        return BadValue(
            f"the argument {path} of {self._name}, a {kind}, would not arrive as it was given. Annotate the "
            "parameter with the type that it is given, give plain data (a list for a list), or declare how "
            "the type is kept with app.codec(...)",
            path=path,
        )

    def content_as_before(
        self, payload: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> str | None:
        """Return what is hashed of a call without the parameters that an earlier one did not have.

        That is None unless there are some, and all of them stand at their defaults.
        """
        bound, before = self._bound(args, kwargs), _FIELDS.decode(payload)
        added = [name for name in bound if name not in before]
        defaults = dict(self._defaults)
        if not added or any(name not in defaults or bound[name] != defaults[name] for name in added):
            return None
        kept = {name: value for name, value in bound.items() if name in before}
        return self._encoded(settled(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its parameters, in their order."""
        return tuple(self._signature.parameters)

    def bound(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Return a call by name, with what its defaults are now."""
        return self._bound(args, kwargs)

    def _bound(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        required, names = self._by_place
        if not kwargs and required <= len(args) <= len(names):
            bound = dict(zip(names, args, strict=False))
        else:
            try:
                bound = self._signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise BadValue(f"{self._name}{self._signature} cannot be called like this: {error}") from None
        for name, default in self._defaults:
            bound.setdefault(name, default)
        return bound

    @cached_property
    def _defaults(self) -> list[tuple[str, object]]:
        parameters = self._signature.parameters.values()
        return [(one.name, one.default) for one in parameters if one.default is not one.empty]

    def decode(self, payload: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a kept call.

        A function whose result could not be kept is refused here, before it runs.
        """
        at_once, _result = self._at_once, self.result
        if at_once is None:
            return self._one_by_one(payload)
        try:
            return [], msgspec.structs.asdict(at_once.decode(payload))
        except Exception:  # noqa: BLE001 (what a class raises that is made of its data can be anything)
            # Which of them does not fit, and why, is said when each is read by itself.
            return self._one_by_one(payload)

    def _one_by_one(self, payload: str) -> tuple[list[Any], dict[str, Any]]:
        data = _FIELDS.decode(payload)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        # What stands before *args must be given by place too, where there are any.
        by_place = _PLACED if self._rest in data else _PLACED[:1]
        for name, parameter, decoded in self._plan:
            kept = data.pop(name, None)
            if kept is None:
                if parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
                    raise BadValue(f"{self._name}{self._signature} needs {name}, which the job does not have")
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args += decoded(kept)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs |= decoded(kept)
            elif parameter.kind in by_place:
                args.append(decoded(kept))
            else:
                kwargs[name] = decoded(kept)
        if data:
            raise BadValue(f"{self._name}{self._signature} has no parameter {', '.join(sorted(data))}")
        return args, kwargs

    @cached_property
    def _by_place(self) -> tuple[int, list[str]]:
        """Return how many arguments a call by place needs, and the names of those that it can give."""
        names: list[str] = []
        required = 0
        for parameter in self._signature.parameters.values():
            if parameter.kind in _VARIADIC:
                return 1, []
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                names.append(parameter.name)
                required += parameter.default is parameter.empty
            elif parameter.default is parameter.empty:
                return 1, []
        return required, names

    @cached_property
    def _at_once(self) -> msgspec.json.Decoder[msgspec.Struct] | None:
        """Return what reads all arguments at once, where all have names."""
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = self._signature.parameters.values()
        if any(one.kind not in named for one in parameters):
            return None
        if any(one.name.startswith("__") for one in parameters):
            return None  # a class mangles some of these names, and means something by others
        try:
            fields = [(one.name, decodable(self._hint(one.name))) for one in parameters]
            whole = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True)
            return msgspec.json.Decoder(whole, dec_hook=to_foreign)
        except Exception:  # noqa: BLE001 (as above: an annotation that cannot be used is told by itself)
            return None

    @cached_property
    def _plain(self) -> dict[str, frozenset[type]]:
        """Return for every parameter the types whose values always come back as they were given."""
        return {
            name: frozenset() if parameter.kind in _VARIADIC else comes_back(self._hint(name))
            for name, parameter in self._signature.parameters.items()
        }

    @cached_property
    def _plan(self) -> list[tuple[str, inspect.Parameter, Callable[[Any], Any]]]:
        """Return every parameter with how its kept value becomes an argument."""
        return [
            (name, parameter, self._decoder(parameter))
            for name, parameter in self._signature.parameters.items()
        ]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return hints_of_function(self._function)

    def _hint(self, name: str) -> Any:  # noqa: ANN401 (an annotation can be anything)
        return self._known(name, self._hints)

    def check(self, *names: str) -> None:
        """Refuse annotations of these that mean nothing at run time; of all if none is named."""
        hints = hints_of_function(self._function)
        for name in names or (*self._signature.parameters, "return"):
            self._known(name, hints)

    def _known(self, name: str, hints: dict[str, Any]) -> Any:  # noqa: ANN401 (an annotation can be anything)
        hint = hints.get(name, Any)
        if isinstance(hint, UnknownAnnotation):
            what = "result" if name == "return" else f"argument {name}"
            raise BadInput(
                f"the {what} of {self._name} is annotated as {hint.text}, which means nothing at run time: "
                "import the name outside of TYPE_CHECKING, define it at the top of a module, or annotate Any"
            )
        return hint

    def _decoder(self, parameter: inspect.Parameter) -> Callable[[Any], Any]:
        annotation = self._hint(parameter.name)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            annotation = types.GenericAlias(list, (annotation,))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            annotation = types.GenericAlias(dict, (str, annotation))
        what = f"the argument {parameter.name} of {self._name}"
        codec = Codec(annotation, what)
        return lambda kept: codec.decode(kept, what)
