"""Rows of ours as rows of the service, and back: by name, without what is empty, long texts in pieces.

A text property holds 32 Ki characters of UTF-16, a row 1 MiB, a transaction 4 MiB and 100 rows. What cannot
fit is refused before anything is written for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from tallystick.core.limits import CALLBACK_BYTES_MAX, KIB, MIB
from tallystick.errors import PayloadTooLarge
from tallystick.store.azure.requests import Value, Values

T = TypeVar("T")

# A character may be two of UTF-16.
PIECE_CHARS: Final = 16_000
_PIECE: Final = "__"

ROW_BYTES_MAX: Final = 1 * MIB
TRANSACTION_BYTES_MAX: Final = 4 * MIB
TRANSACTION_ROWS_MAX: Final = 100
# What a row may grow by after its birth: a RESULT as the value of its step, as an error, and as a fact.
_ROOM_BYTES: Final = 2 * CALLBACK_BYTES_MAX + 64 * KIB
# What the service counts for a property besides its value, and for a row besides its properties.
_PROPERTY_BYTES: Final = 16
_ROW_BYTES: Final = 512
# How much longer than UTF-16 a text may be on its way: a character as an escape in JSON.
_ESCAPED: Final = 3


def packed(values: Mapping[str, Value]) -> Values:
    """Return properties without those that are empty, and with long texts in pieces.

    >>> sorted(packed({"a": "x" * 16_001, "b": None}))
    ['a', 'a__1']
    """
    made: dict[str, Value] = {}
    for name, value in values.items():
        if isinstance(value, str) and len(value) > PIECE_CHARS:
            made[name], *rest = [value[at : at + PIECE_CHARS] for at in range(0, len(value), PIECE_CHARS)]
            made |= {f"{name}{_PIECE}{number}": piece for number, piece in enumerate(rest, start=1)}
        elif value is not None:
            made[name] = value
    return made


def unpacked(values: Values) -> dict[str, Any]:
    """Return properties with their texts whole.

    >>> unpacked(packed({"a": "x" * 16_001}))["a"] == "x" * 16_001
    True
    """
    made: dict[str, Any] = {name: value for name, value in values.items() if _PIECE not in name}
    pieces = [(name.partition(_PIECE), value) for name, value in values.items() if _PIECE in name]
    for (name, _, _number), value in sorted(pieces, key=lambda each: int(each[0][2])):
        made[name] += value
    return made


def read_as(kind: type[T], values: Values) -> T:
    """Return a tuple whose fields are named by the properties of a row; None for those that are not there."""
    found = unpacked(values)
    return kind._make(found.get(name) for name in kind._fields)  # type: ignore[attr-defined,no-any-return]  # of tuples


def written(value: object) -> str | None:
    """Return JSON of a small value that is kept as one text, if there is one."""
    return None if value is None else msgspec.json.encode(value).decode()


def read_written(kind: type[T], text: str | None) -> T | None:
    """Return such a value again."""
    return None if text is None else kind._make(msgspec.json.decode(text))  # type: ignore[attr-defined]  # of tuples


def bytes_of(values: Values) -> int:
    """Return about how many bytes the service counts for a row, not too few."""
    counted = sum(
        2 * len(name) + _PROPERTY_BYTES + (len(value.encode("utf-16-le")) if isinstance(value, str) else 8)
        for name, value in values.items()
    )
    return counted + _ROW_BYTES


def check_births(what: str, rows: Iterable[Values], directives: Iterable[str]) -> None:
    """Refuse what could not be written, now or when a RESULT of any allowed size is added to it."""
    sizes = [bytes_of(values) for values in rows]
    most = max([*sizes, *(len(text.encode("utf-16-le")) + _ROW_BYTES for text in directives)])
    _check(what, most + _ROOM_BYTES, ROW_BYTES_MAX, "a row")
    _check(what, _ESCAPED * (sum(sizes) + _ROOM_BYTES), TRANSACTION_BYTES_MAX, "a transaction")
    if len(sizes) > TRANSACTION_ROWS_MAX:
        raise PayloadTooLarge(
            f"the {what} has {len(sizes) - 1} steps, and Azure Tables take {TRANSACTION_ROWS_MAX - 1}",
            kind=what,
        )


def _check(what: str, size: int, most: int, where: str) -> None:
    if size > most:
        raise PayloadTooLarge(
            f"the {what} would need {size} bytes in {where} of Azure Tables, with room for its results, and "
            f"{most} are allowed; keep large data elsewhere and pass a reference to it",
            kind=what,
            size_bytes=size,
            bytes_max=most,
        )
