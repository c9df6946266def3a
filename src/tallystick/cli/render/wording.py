"""How instants, durations and stored text are said to people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from tallystick.cli.render.output import printable
from tallystick.core.json_forms.sealed import is_sealed
from tallystick.core.json_forms.strict_json import decode_strict
from tallystick.errors import BadJson, PayloadTooLarge

_UNITS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
_SHOWN_CHARS: Final = 80


def span(ms: int) -> str:
    """Return a length of time in its largest whole unit.

    >>> span(3 * 86_400_000 + 7), span(61_000), span(12)
    ('3 days', '1 minute', '12 ms')
    """
    for unit, length in _UNITS:
        if ms >= length:
            count = ms // length
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{ms} ms"


def ago(at: int, now: int) -> str:
    """Return how long ago an instant was, or how far ahead it is."""
    if abs(now - at) < _UNITS[-1][1]:
        return "just now"
    return f"{span(now - at)} ago" if now >= at else f"in {span(at - now)}"


def instant(at: int | None) -> str | None:
    """Return an instant as text that every program reads: UTC, to the millisecond.

    >>> instant(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def size(count: int) -> str:
    """Return a number of bytes in a unit that people read.

    >>> size(512), size(4096), size(3 * 1024 * 1024)
    ('512 B', '4.0 KiB', '3.0 MiB')
    """
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError(unit)


def short(text: str | None, chars: int = _SHOWN_CHARS) -> str:
    r"""Return the beginning of a stored text on one line, without anything that a terminal would obey.

    >>> short("bell" + chr(7), 10), short("x" * 9, 5)
    ('bell\\x07', 'xxxx…')
    """
    shown = "(sealed)" if is_sealed(text) else printable((text or "")[: chars + 1])
    return shown if len(shown) <= chars else f"{shown[: chars - 1]}…"


def count(number: int, word: str) -> str:
    """Return a number of things.

    >>> count(1, "job"), count(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def in_short(error: BaseException) -> str:
    r"""Return the kind of an error and the first line of what it says, if it can say anything.

    >>> in_short(ValueError("no price\nyet"))
    'ValueError: no price'
    """
    try:
        says = str(error).partition("\n")[0]
    except Exception:  # noqa: BLE001 (a class of the user's; its kind is still worth showing)
        says = "(and cannot say what)"
    kind = type(error).__name__
    return f"{kind}: {says}" if says else kind


def stored_value(text: str | None) -> Any:  # noqa: ANN401 (whatever the text says)
    """Return the value of stored JSON; what no strict reader accepts is shown as the text it is."""
    if text is None:
        return None
    try:
        return decode_strict(text.encode())
    except (BadJson, PayloadTooLarge):
        return text
