"""The columns of named rows: a field of the tuple is a column of its table, and is written down once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, get_type_hints

from tallystick.core.pictures import Activity, JobFacts, Message
from tallystick.store.api import ChildRow, Event, JobRow, NewJob, Record, RecordStep
from tallystick.store.inspection import AttemptRow, Book

INSTANTS: Final = ("ready_at", "deadline_at", "created_at")
"""What a submission names by the clock of its process, and a store keeps by its own."""

_ROWS: Final = (Activity, AttemptRow, Book, ChildRow, Event, JobFacts, JobRow, Message, NewJob, Record)
_PARTS: Final = {"Timeless": (NewJob, INSTANTS), "Recorded": (RecordStep, ("fence", "chain"))}
_CALLED: Final = {("Activity", "mode"): "payload"}
_TYPES: Final = {str: "text", int: "bigint", bytes: "bytea", bool: "boolean"}


@cache
def fields(shape: str) -> dict[str, str]:
    """Return the fields of a named row, in their order, each with its type on PostgreSQL.

    >>> list(fields("Record")), fields("Record")["n"]
    (['name', 'occurrence', 'kind', 'state', 'n', 'result', 'error', 'notes'], 'bigint')
    """
    row, without = _PARTS.get(shape) or (next(row for row in _ROWS if row.__name__ == shape), ())
    return {name: _type(hint) for name, hint in get_type_hints(row).items() if name not in without}


def column(shape: str, field: str) -> str:
    """Return the column that a field is kept in.

    >>> column("Activity", "mode"), column("Activity", "ledger")
    ('payload', 'ledger')
    """
    return _CALLED.get((shape, field), field)


def _getter(names: Sequence[str], without: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what takes all fields but some out of a named row: made once, as fast as a slice."""
    return itemgetter(*(place for place, name in enumerate(names) if name not in without))


timeless: Final[Callable[[NewJob], tuple[Any, ...]]] = _getter(NewJob._fields, INSTANTS)
"""What a submission decides but the instants: the columns that statements call `Timeless`."""

recorded: Final[Callable[[RecordStep], tuple[Any, ...]]] = _getter(RecordStep._fields, ("fence", "chain"))
"""What a step records: the columns that statements call `Recorded`."""


def _type(hint: object) -> str:
    """Return the type of a column; a field that may be None is one that may be null."""
    return next(_TYPES[kind] for kind in getattr(hint, "__args__", (hint,)) if kind in _TYPES)
