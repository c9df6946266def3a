"""Columns that travel as arrays: one text for each, made without looking at every value.

A list of rows sent as JSON is read by the server value by value and row by row; the same columns as arrays
cost it half of that. A column that has nothing in it is an empty array: `unnest` fills it with nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

# A character that a value has only if a caller put it there; then the values are quoted one by one.
_BETWEEN: Final = "\x1f"
_EMPTY: Final = "{}"


def texts(values: Sequence[str | None]) -> str:
    r"""Return texts as PostgreSQL reads an array of them.

    >>> texts(['{"a":1}', "b"])
    '{"{\\"a\\":1}","b"}'
    >>> texts([None, "b"]), texts([None, None])
    ('{NULL,"b"}', '{}')
    """
    try:
        joined = _BETWEEN.join(values)  # type: ignore[arg-type]  # a null is what the except is for
    except TypeError:
        return _one_by_one(values)
    if joined.count(_BETWEEN) != len(values) - 1:
        return _one_by_one(values)
    return '{"' + _escaped(joined).replace(_BETWEEN, '","') + '"}'


def numbers(values: Sequence[int | None]) -> str:
    """Return whole numbers as PostgreSQL reads an array of them.

    >>> numbers([1, None]), numbers([None])
    ('{1,NULL}', '{}')
    """
    if values[0] is None and not _any(values):
        return _EMPTY
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


def hashes(values: Iterable[bytes]) -> str:
    r"""Return bytes as PostgreSQL reads an array of them.

    >>> hashes([b"\x00\xff", b""])
    '{"\\\\x00ff","\\\\x"}'
    """
    return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'


def _one_by_one(values: Sequence[str | None]) -> str:
    if not _any(values):
        return _EMPTY
    return "{" + ",".join("NULL" if value is None else f'"{_escaped(value)}"' for value in values) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _any(values: Iterable[object]) -> bool:
    return any(value is not None for value in values)
