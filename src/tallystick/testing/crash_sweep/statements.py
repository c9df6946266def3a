"""The SQL of the harness, one statement a file; it knows the tables and none of the engine's code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> str:
    """Return the statement of that name."""
    return files(__package__).joinpath("statements", f"{name}.sql").read_text(encoding="utf-8")
