"""Annotations as they are at run time, each looked up by itself.

A name that exists only for type checkers, or an annotation that is prose, is an `UnknownAnnotation`, and
costs none of the others what they say. Where a value is to be given back by it, it is refused.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, NamedTuple


class UnknownAnnotation(NamedTuple):
    """An annotation that means nothing at run time, as it is written."""

    text: str


def hints_of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what is known of the parameters and the result of a function, by name."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 (annotations are code, and may raise anything)
        names = getattr(inspect.unwrap(function), "__globals__", {})
        return _one_by_one(function, names, {})


def hints_of_class(kind: type) -> dict[str, Any]:
    """Return what is known of the annotated names of a class, inherited ones too; the others are Any."""
    found: dict[str, Any] = {}
    for ancestor in reversed(kind.__mro__):
        names = vars(sys.modules[ancestor.__module__]) if ancestor.__module__ in sys.modules else {}
        found |= _one_by_one(ancestor, names, dict(vars(ancestor)))
    return {name: Any if isinstance(hint, UnknownAnnotation) else hint for name, hint in found.items()}


def _one_by_one(owner: Callable[..., Any], names: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Look up each annotation as that of a class which has no other: there `ClassVar` is allowed too."""
    found: dict[str, Any] = {}
    for name, annotation in inspect.get_annotations(owner).items():
        alone = type("Alone", (), {"__annotations__": {name: annotation}})
        try:
            found |= typing.get_type_hints(alone, names, own, include_extras=True)
        except Exception:  # noqa: BLE001 (as above)
            found[name] = UnknownAnnotation(str(annotation))
    return found
