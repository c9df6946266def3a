"""The columns of named rows: a field of the tuple is a column of its table, and is written down once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, get_type_hints

from tallystick.core.book import AttemptRow, Book, Content
from tallystick.core.chain import Link
from tallystick.core.pictures import Activity, JobFacts, Message
from tallystick.core.plans import InsertAttempt, JobValues, MoveAttempt
from tallystick.store.api import ChildRow, Event, Fence, JobRow, NewJob, Record, RecordStep

# What each job has for itself, and the instants, which a submission names by another clock than the store's.
_INSTANTS: Final = ("ready_at", "deadline_at", "created_at")
_OWN: Final = ("job_id", "payload", *_INSTANTS)

_ROWS: Final = (
    *(Activity, AttemptRow, Book, ChildRow, Content, Event, Fence, InsertAttempt, JobFacts, JobRow),
    *(JobValues, Link, Message, MoveAttempt, NewJob, Record),
)
_KEYS: Final = ("version", "idempotency_key", "idempotency_hash", "canon_version")
# What jobs share that are submitted together, what a fork takes over, what a step records.
_PARTS: Final = {
    "Alike": (NewJob, _OWN),
    "Forked": (NewJob, (*_INSTANTS, *_KEYS, "job_id")),
    "Recorded": (RecordStep, ("fence", "chain")),
}
_CALLED: Final = {("Activity", "mode"): "payload", ("Recorded", "at"): "completed_at"}
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
    """Return what takes all fields but the first ones out of a named row: made once, as fast as can be."""
    assert set(names[: len(without)]) == set(without), "they come first"
    return itemgetter(slice(len(without), None))


alike: Final[Callable[[NewJob], tuple[Any, ...]]] = _getter(NewJob._fields, _OWN)
"""What jobs that are submitted together share: the columns that statements call `Alike`."""

recorded: Final[Callable[[RecordStep], tuple[Any, ...]]] = _getter(RecordStep._fields, ("fence", "chain"))
"""What a step records: the columns that statements call `Recorded`."""


def _type(hint: object) -> str:
    """Return the type of a column; a field that may be None is one that may be null."""
    return next(_TYPES[kind] for kind in getattr(hint, "__args__", (hint,)) if kind in _TYPES)
