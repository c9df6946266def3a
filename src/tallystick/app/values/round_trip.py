"""Whether a value comes back from its JSON as it was given, and where it does not.

A value is compared by its own `==`. What has none is the same if type and JSON are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tallystick.app.values.own_types import from_foreign

_as_json = msgspec.json.Encoder(enc_hook=from_foreign, order="deterministic").encode


def difference(given: object, back: object, path: str) -> tuple[str, object] | None:
    """Return the first value that comes back as another one, behind its path, or None if all are the same.

    >>> difference([1, {"a": (2,)}], [1, {"a": [2]}], "order")
    ("order[1]['a']", (2,))
    """
    if given is back or _equal(given, back) or isinstance(given, msgspec.Raw):
        return None
    kind = type(given)
    if kind is not type(back):
        return path, given
    members = list(_members(given, back, path))
    for of_given, of_back, its_path in members:
        found = difference(of_given, of_back, its_path)
        if found is not None:
            return found
    if kind.__eq__ is object.__eq__:
        return None if _as_json(given) == _as_json(back) else (path, given)
    # Members that have no `==` and are the same may be why they differ; otherwise it is something unseen.
    explained = any(not _equal(of_given, of_back) for of_given, of_back, _path in members)
    return None if explained else (path, given)


def _equal(given: object, back: object) -> bool:
    try:
        return bool(given == back)
    except Exception:  # noqa: BLE001 (a comparison is the user's code; what cannot be compared is looked at)
        return False


def _members(given: Any, back: Any, path: str) -> Iterator[tuple[object, object, str]]:  # noqa: ANN401 (both are values of a user)
    """Return what two values of one type are made of, in pairs, each with its path."""
    if isinstance(given, dict):
        if given.keys() == back.keys():
            for key in given:
                yield given[key], back[key], f"{path}[{key!r}]"
    elif isinstance(given, list | tuple):
        if len(given) == len(back):
            for place, pair in enumerate(zip(given, back, strict=True)):
                yield *pair, f"{path}[{place}]"
    else:
        for name in _fields(type(given)):
            if hasattr(given, name) and hasattr(back, name):
                yield getattr(given, name), getattr(back, name), f"{path}.{name}"


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a Struct, a dataclass, an attrs class or a pydantic model."""
    for names in ("__struct_fields__", "__dataclass_fields__", "__attrs_attrs__", "model_fields"):
        fields = getattr(kind, names, None)
        if fields is not None:
            return tuple(getattr(field, "name", field) for field in fields)
    return ()
