"""Rows that are written in lists: up to sixteen per statement, because a statement costs more than its row.

A statement is found by its text whenever it is run, and then put back into a ring of a few hundred, out of
which it pushes the oldest. A flush that ran its statements once per row would soon have none of them left.
The plain twin writes one row per statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import apsw

from tallystick.errors import InvariantBroken
from tallystick.store.refusals import Refused
from tallystick.store.sqlite.statements import sql_of_rows, takes_list
from tallystick.tuning import is_plain

_SIZES: Final = (1,) if is_plain() else (16, 4, 1)


def write_rows(cursor: apsw.Cursor, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for every row; if one of them fails, the caller undoes all of them."""
    if len(rows) == 1:  # so it is in the flush of a job that is alone
        _run(cursor, name, 1, rows)
        return
    begin = 0
    for size in _SIZES if takes_list(name) else (1,):
        end = begin + (len(rows) - begin) // size * size
        if end > begin:
            joined = [tuple(chain.from_iterable(rows[at : at + size])) for at in range(begin, end, size)]
            _run(cursor, name, size, joined)
        begin = end


def _run(cursor: apsw.Cursor, name: str, size: int, rows: Sequence[Sequence[Any]]) -> None:
    try:
        cursor.executemany(sql_of_rows(name, size), rows)
    except apsw.ConstraintError as error:
        error.add_note(name)
        raise


def write_exactly(connection: apsw.Connection, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for every row; one whose guard did not find what was looked at refuses all of them."""
    before = connection.total_changes()
    write_rows(connection.cursor(), name, rows)
    if connection.total_changes() - before != len(rows):
        about = f"{name} did not change {len(rows)} rows, as it was planned"
        raise Refused(InvariantBroken(about, statement=name))
