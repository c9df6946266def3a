"""What the first parameter of a tx is: our transaction, a psycopg connection, or an SQLAlchemy session."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_origin

from tallystick.app.running.async_tx import AsyncTx
from tallystick.app.values.annotations import hints_of_function
from tallystick.errors import BadInput

# By name, so that neither library is imported for it.
_LIBRARIES = {("psycopg", "Connection"): "psycopg", ("sqlalchemy", "Session"): "SQLAlchemy"}


def library_type(function: Callable[..., Any]) -> type | None:
    """Return the class of another library that a tx wants its transaction as; None for our own."""
    kind = _annotated(function)
    return kind if kind is not None and _library(kind) is not None else None


def check_async(name: str, function: Callable[..., Any]) -> None:
    """Refuse an `async def` tx that wants a transaction whose calls would block its loop."""
    kind = _annotated(function)
    if kind is not None and not issubclass(kind, AsyncTx):
        raise BadInput(f"{name} is async, and a {kind.__name__} would block its loop: write db: AsyncTx")


def _annotated(function: Callable[..., Any]) -> type | None:
    """Return the class of the first parameter, if it has one at run time."""
    first = next(iter(inspect.signature(function).parameters), "")
    hint = hints_of_function(function).get(first)
    kind = get_origin(hint) or hint
    return kind if isinstance(kind, type) else None


def why_not_on_sqlite(function: Callable[..., Any]) -> str | None:
    """Return why a tx cannot run on a SQLite file, or None if it can."""
    if inspect.iscoroutinefunction(function):
        return "it is `async def`, and would hold the one writer of the file while it awaits: write `def`"
    kind = library_type(function)
    if kind is None:
        return None
    return (
        f"it takes a {kind.__name__} of {_library(kind)}, and a process must not open the file with a second "
        "library, which would drop the locks of the first: write db: Tx"
    )


def _library(kind: type) -> str | None:
    for ancestor in kind.__mro__:
        name = (ancestor.__module__.partition(".")[0], ancestor.__name__)
        if name in _LIBRARIES:
            return _LIBRARIES[name]
    return None
