"""The SQL of the harness, one statement a file; it knows the tables and none of the engine's code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def sql(name: str, store: str = "sqlite") -> str:
    """Return the statement of that name, in the words of a store where they differ."""
    folder = files(__package__).joinpath("statements")
    own = folder.joinpath(store, f"{name}.sql")
    return (own if own.is_file() else folder.joinpath(f"{name}.sql")).read_text(encoding="utf-8")
