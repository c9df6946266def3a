"""Types that msgspec does not know: those that a user declares, and those of pydantic if it is installed."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from tallystick.errors import BadInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

HIDDEN: Final = (
    "it hides what it holds and would be kept as asterisks; give a reference to it, and read it in a step"
)


class OwnType(NamedTuple):
    """How values of one type are kept, as its user has declared it."""

    encode: Callable[[Any], object]
    decode: Callable[[Any], Any]


_own: Final[dict[type, OwnType]] = {}
_adapters: Final[dict[type, TypeAdapter[Any] | None]] = {}


def declare(kind: type[T], encode: Callable[[T], object], decode: Callable[[Any], T]) -> None:
    """Keep values of a type in a way of their own, in every Tally of this process."""
    if not isinstance(kind, type):
        raise BadInput(f"{kind!r} is not a type; declare the class of the values")
    if not isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.CustomType):
        raise BadInput(f"a {kind.__qualname__} is data already, and kept as that; it needs no declaration")
    declared = _own.setdefault(kind, OwnType(encode, decode))
    if declared != (encode, decode):
        raise BadInput(f"how a {kind.__qualname__} is kept is declared already; declare it once")


def from_foreign(value: object) -> object:
    """Return a value as data that msgspec knows."""
    kind = type(value)
    own = _own.get(kind)
    if own is not None:
        return own.encode(value)
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if is_secret(value):
        raise TypeError(f"a {kind.__qualname__}: {HIDDEN}")
    adapter = _adapter_of_type(kind)
    if adapter is None:
        raise TypeError(f"a {kind.__qualname__} is not data")
    return adapter.dump_python(value, mode="json")


def to_foreign(kind: type[T], data: object) -> T:
    """Make a value of data; `object` inside another annotation is data as it is."""
    if kind is object:
        return data  # type: ignore[return-value]  # everything is one
    own = _own.get(kind)
    if own is not None:
        return own.decode(data)  # type: ignore[no-any-return]  # as its user has declared it
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(data)  # type: ignore[no-any-return]  # pydantic returns an instance of the class
    adapter = _adapter_of_type(kind)
    if adapter is None:
        raise TypeError(f"data cannot become a {kind!r}")
    return adapter.validate_python(data)  # type: ignore[no-any-return]  # pydantic returns one of the type


def is_secret(value: object) -> bool:
    """Tell whether a value hides what it holds, as pydantic's secrets do."""
    return hasattr(value, "get_secret_value")


def _adapter_of_type(kind: type) -> TypeAdapter[Any] | None:
    if kind not in _adapters:
        _adapters[kind] = adapter_of(kind)
    return _adapters[kind]


def adapter_of(annotation: Any) -> TypeAdapter[Any] | None:  # noqa: ANN401 (an annotation can be anything)
    """Return what pydantic makes of an annotation, or None if it is not installed or knows no such type."""
    try:
        from pydantic import TypeAdapter  # noqa: PLC0415 (optional, and slow to import)
    except ImportError:
        return None
    try:
        return TypeAdapter(annotation)
    except Exception:  # noqa: BLE001 (what is wrong with a type is told by the code that asked for it)
        return None


def names_models(annotation: Any) -> bool:  # noqa: ANN401 (an annotation can be anything)
    """Tell whether an annotation is made of pydantic models: then pydantic reads the whole of it."""
    if isinstance(annotation, type) and hasattr(annotation, "model_validate"):
        return True
    return any(names_models(part) for part in typing.get_args(annotation))
