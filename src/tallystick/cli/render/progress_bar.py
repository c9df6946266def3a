"""How far a job is, in a cell of a table or as a bar."""

from __future__ import annotations

from typing import Final

_CELLS: Final = 20


def share(progress: object) -> str:
    """Return the part that is done in percent, or nothing if that is not to be told.

    >>> share({"done": 3, "total": 8}), share({"done": 0, "total": 0}), share("soon")
    ('37%', '', '')
    """
    part = _part(progress)
    return "" if part is None else f"{int(part * 100)}%"


def bar(progress: object) -> str:
    """Return a bar with numbers, or nothing if that is not to be told.

    >>> bar({"done": 3, "total": 8})
    '[#######-------------] 37%, 3 of 8'
    """
    part = _part(progress)
    if part is None or not isinstance(progress, dict):
        return ""
    full = int(part * _CELLS)
    return (
        f"[{'#' * full}{'-' * (_CELLS - full)}] {share(progress)}, {progress['done']} of {progress['total']}"
    )


def _part(progress: object) -> float | None:
    """Return which part is done; a job may show anything under this name."""
    match progress:
        case {"done": int() | float() as done, "total": int() | float() as total} if 0 <= done <= total > 0:
            return done / total
    return None
