"""Durations as people write them, turned into whole milliseconds.

A duration is never shortened: what is left of a millisecond is rounded up.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from tallystick.core.limits import DURATION_MS_MAX
from tallystick.errors import BadDuration

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PLAIN: Final = re.compile(_NUMBER)
_UNITS: Final = re.compile(
    "".join(
        rf"(?:(?P<{unit}>{_NUMBER})\s*{suffix}\s*)?"
        for unit, suffix in (
            ("weeks", "w"),
            ("days", "d"),
            ("hours", "h"),
            ("minutes", "m"),
            ("seconds", "s"),
            ("milliseconds", "ms"),
        )
    ),
)
_MILLISECOND: Final = timedelta(milliseconds=1)
_WRITTEN: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))


def duration_ms(value: str | float | timedelta) -> int:
    """Return the duration in milliseconds; a number, also one written as text, is seconds.

    Units are w, d, h, m, s and ms, the largest first, each at most once. What is negative, not finite,
    longer than a century or not readable raises `BadDuration`.

    >>> duration_ms("1h30m"), duration_ms("500ms"), duration_ms("2d"), duration_ms(0.25)
    (5400000, 500, 172800000, 250)
    """
    try:
        span = _span(value)
    except (OverflowError, ValueError) as error:
        raise _refusal(value, "it is not a finite number of days") from error
    if span is None:
        raise _refusal(value, "write it like 30s, 15m, 1h30m or 500ms, or as a number of seconds")
    ms = -(-span // _MILLISECOND)
    if span < timedelta(0):
        raise _refusal(value, "it is negative")
    if ms > DURATION_MS_MAX:
        raise _refusal(value, "it is longer than a century")
    return ms


def written(ms: int) -> str:
    """Return a duration as a person would write it, so that `duration_ms` reads it again.

    >>> written(900_000), written(5_400_500), written(172_800_000), written(0)
    ('15m', '1h30m500ms', '2d', '0s')
    """
    parts = []
    for each, unit in _WRITTEN:
        number, ms = divmod(ms, each)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def _span(value: object) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return _span_of_text(value.strip())
    # A truth value is a number to Python, and True is not meant as one second.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return None


def _span_of_text(text: str) -> timedelta | None:
    if _PLAIN.fullmatch(text):
        return timedelta(seconds=float(text))
    match = _UNITS.fullmatch(text)
    if match is None or not text:
        return None
    return timedelta(**{unit: float(amount) for unit, amount in match.groupdict().items() if amount})


def _refusal(value: object, reason: str) -> BadDuration:
    # Python refuses to print an integer of thousands of digits.
    shown = "this integer" if isinstance(value, int) and abs(value) > DURATION_MS_MAX else ascii(value)[:80]
    return BadDuration(f"{shown} is not a duration: {reason}", value=shown, reason=reason)
