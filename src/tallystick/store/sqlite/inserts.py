"""Rows that are only inserted: eight a statement, because the library looks one up whenever it is run.

It is found by its text, and put back into a ring of a few hundred, out of which it pushes the oldest: a flush
that ran its statements once a row would soon have none of them left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tallystick.store.sqlite.statements import sql, sql_of_rows

if TYPE_CHECKING:
    import apsw

_AT_ONCE: Final = 8

# Not those that read a row for each that they write: a step, which reads its fence, becomes slower.
PLAIN: Final = frozenset({"insert_event", "insert_attempt", "insert_job", "insert_child", "insert_child_end"})


def insert_rows(cursor: apsw.Cursor, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement of `PLAIN` for every row; if one of them fails, whoever calls undoes all of them."""
    whole = len(rows) - len(rows) % _AT_ONCE
    if whole:
        joined = [tuple(chain.from_iterable(rows[at : at + _AT_ONCE])) for at in range(0, whole, _AT_ONCE)]
        cursor.executemany(sql_of_rows(name, _AT_ONCE), joined)
    cursor.executemany(sql(name), rows[whole:])
