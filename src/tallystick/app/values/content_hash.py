"""What is hashed of arguments: the same in every process.

A set is written in the order of its hashes, which every process draws anew. Where a call is known by its
content, its sets are kept in one order; a user's dicts keep theirs.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tallystick.app.values.own_types import from_foreign
from tallystick.core.limits import JSON_DEPTH_MAX

_written: Final = msgspec.json.Encoder(enc_hook=from_foreign, order="deterministic").encode


def settled(value: object, depth_left: int = JSON_DEPTH_MAX) -> object:
    """Return a value with each of its sets as a list in one order, or the value itself if it has no set.

    What is nested deeper than a content may be is left as it is; its hash is refused.
    """
    if not depth_left:
        return value
    if isinstance(value, set | frozenset):
        return sorted((settled(member, depth_left - 1) for member in value), key=_written)
    if isinstance(value, dict):
        members = [settled(member, depth_left - 1) for member in value.values()]
        return dict(zip(value, members, strict=True)) if _differ(members, value.values()) else value
    if isinstance(value, list | tuple):
        items = [settled(item, depth_left - 1) for item in value]
        return items if _differ(items, value) else value
    if hasattr(value, "model_dump"):
        return _settled_model(value)
    return _settled_fields(value, depth_left - 1)


def _differ(after: Iterable[object], before: Iterable[object]) -> bool:
    return any(map(operator.is_not, after, before))


def _settled_fields(value: object, depth_left: int) -> object:
    """Return a copy of a dataclass or Struct with other fields, or itself if none of them has a set."""
    kind = type(value)
    names = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
    before = {name: getattr(value, name) for name in names if hasattr(value, name)}
    after = {name: settled(member, depth_left) for name, member in before.items()}
    if not _differ(after.values(), before.values()):
        return value
    twin = copy.copy(value)
    for name, member in after.items():
        if isinstance(twin, msgspec.Struct):
            msgspec.structs.force_setattr(twin, name, member)
        else:
            object.__setattr__(twin, name, member)
    return twin


def _settled_model(model: Any) -> object:  # noqa: ANN401 (what has the methods of a pydantic model)
    """Return a model as data; its own data has lists already where the model has sets."""
    data = model.model_dump(mode="json")
    ordered = _ordered(data, model.model_dump(mode="python"))
    return model if ordered == data else ordered


def _ordered(data: object, like: object) -> object:
    """Return data with those lists in one order that are sets in what they were made of."""
    if isinstance(data, list) and isinstance(like, set | frozenset):
        return sorted(data, key=_written)
    if isinstance(data, dict) and isinstance(like, dict) and len(data) == len(like):
        return {key: _ordered(data[key], member) for key, member in zip(data, like.values(), strict=True)}
    if isinstance(data, list) and isinstance(like, list | tuple) and len(data) == len(like):
        return [_ordered(item, other) for item, other in zip(data, like, strict=True)]
    return data
