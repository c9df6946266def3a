"""What somebody else does while a workflow runs, at a moment that the test chooses."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def elsewhere(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function out of the context of the workflow that this is called in, as a stranger would."""
    return Context().run(function, *args, **kwargs)
