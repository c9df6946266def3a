"""Late reports: what is kept for people of a report that its store refused, because its lease was over."""

from __future__ import annotations

from tallystick.core.effects.requests import EndEffect
from tallystick.core.effects.rows import unit_of
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, clip_text


def report_of(primitive: object) -> str:
    """Return what is kept of a report that came too late: of a call of an effect also what it said."""
    name = type(primitive).__name__
    if not isinstance(primitive, EndEffect):
        return name
    said = primitive.result if primitive.error is None else primitive.error
    text = f"{name} {unit_of(primitive.place)}: {primitive.outcome} {said or ''}".rstrip()
    return clip_text(text, ERROR_TEXT_BYTES_MAX)
