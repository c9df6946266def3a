"""Late reports: what is kept for people of a report that its store refused, because its lease was over."""

from __future__ import annotations

from tallystick.core.effects.requests import DoubtEffect, EndEffect, RestEffect
from tallystick.core.effects.rows import Came, unit_of
from tallystick.core.limits import ERROR_TEXT_BYTES_MAX, clip_text


def report_of(primitive: object) -> str:
    """Return what is kept of a report that came too late: of a call of an effect also what it said."""
    name = type(primitive).__name__
    match primitive:
        case EndEffect():
            said = primitive.result if primitive.error is None else primitive.error
            told = f"{primitive.outcome} {said or ''}".rstrip()
        case RestEffect():
            told = Came.NOT_DONE.value
        case DoubtEffect():
            told = primitive.why
        case _:
            return name
    return clip_text(f"{name} {unit_of(primitive.place)}: {told}", ERROR_TEXT_BYTES_MAX)
