"""The columns of named rows: a field of the tuple is a column of its table, and is written down once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, get_type_hints

from tallystick.core.audit.book import AttemptRow, Book, JobRest, Kept, StepRest
from tallystick.core.audit.removals import PrunedRow
from tallystick.core.chain import Link
from tallystick.core.effects.rows import EffectRow
from tallystick.core.pictures import Activity, JobFacts, Message
from tallystick.core.plans import InsertAttempt, JobValues, MoveAttempt, PutValue
from tallystick.core.queues.admitting import Slot
from tallystick.core.queues.rows import Queue
from tallystick.core.remote.keys import ApiKey
from tallystick.core.remote.listing import StepRow
from tallystick.core.remote.requests import NewProtocolJob
from tallystick.core.remote.rows import OutboxRow, ProtocolJob, ProtocolStep
from tallystick.core.schedules.rows import Schedule
from tallystick.core.watching.acts import Act, ActRow
from tallystick.core.watching.rows import WorkerRow
from tallystick.store.api import (
    ChildRow,
    Fence,
    JobRow,
    NewJob,
    Opened,
    OwedHook,
    Record,
    RecordStep,
    ShownValue,
    StoredEvent,
)

# What each job has for itself, and the instants, which a submission names by another clock than the store's.
_INSTANTS: Final = ("ready_at", "deadline_at", "created_at")
_OWN: Final = ("job_id", "payload", *_INSTANTS)


class Before(NamedTuple):
    """What guards a row that is moved: its revision or its digits; None if it is new."""

    before: int | None


class Hit(NamedTuple):
    """Whether the semaphore of a row comes to its threshold by the move."""

    hit: bool


class NewestFact(NamedTuple):
    """The newest fact of a job."""

    head_n: int | None
    head_hash: bytes | None


class Learned(NamedTuple):
    """What an activity learns when it begins and when it ends."""

    created_at: int | None
    completed_at: int | None
    result: str | None
    error: str | None


_ROWS: Final = (
    *(
        Activity,
        AttemptRow,
        Book,
        ChildRow,
        Before,
        StoredEvent,
        Fence,
        NewestFact,
        Hit,
        InsertAttempt,
        JobFacts,
        JobRow,
    ),
    *(JobValues, Learned, Link, Message, MoveAttempt, NewJob, Opened, OwedHook, PutValue, Record, ShownValue),
    *(NewProtocolJob, OutboxRow, ProtocolJob, ProtocolStep, Schedule),
    *(Act, ActRow, ApiKey, Queue, Slot, StepRow, WorkerRow),
    *(JobRest, Kept, PrunedRow, StepRest, EffectRow),
)
# Rows that plans move, as one flat list each.
_MOVES: Final = {
    "JobMove": ("Before", "Hit", "Moved", "JobValues", "NewestFact"),
    "ActivityMove": ("Before", "Hit", "Activity", "Learned", "Link"),
    "MessageMove": ("Before", "Message"),
}
# What decisions read of a job and never change.
_KEPT: Final = ("ledger_form", "parent_job_id", "parent_step", "inbox_end", "inbox_at", "deadline_at", "code")
_KEYS: Final = ("version", "idempotency_key", "idempotency_hash", "canon_version")
_HOME: Final = ("parent_job_id", "detached")
# What jobs share that are submitted together, what a fork takes over, what a step records.
_PARTS: Final = {
    "Alike": (NewJob, _OWN),
    "Moved": (JobFacts, _KEPT),
    "Forked": (NewJob, (*_INSTANTS, *_KEYS, *_HOME, "job_id", "options")),
    "Recorded": (RecordStep, ("fence", "chain")),
    "RemoteStep": (ProtocolStep, ("job_id", "step_id")),
}
_CALLED: Final = {
    ("Activity", "mode"): "payload",
    ("Recorded", "at"): "completed_at",
    ("Recorded", "began_at"): "created_at",
    ("ProtocolStep", "step_id"): "name",
}
_TYPES: Final = {str: "text", int: "bigint", bytes: "bytea", bool: "boolean"}


@cache
def fields(shape: str) -> dict[str, str]:
    """Return the fields of a named row, in their order, each with its type on PostgreSQL.

    >>> list(fields("Record")), fields("Record")["n"]
    (['name', 'occurrence', 'kind', 'state', 'n', 'result', 'error', 'notes', 'attempt'], 'bigint')
    """
    if shape in _MOVES:
        return {name: kind for part in _MOVES[shape] for name, kind in fields(part).items()}
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

remote: Final[Callable[[ProtocolStep], tuple[Any, ...]]] = _getter(
    ProtocolStep._fields, ("job_id", "step_id")
)
"""A remote step of a workflow without its place: the columns that statements call `RemoteStep`."""

assert JobFacts._fields[-len(_KEPT) :] == _KEPT, "they come last"
moved: Final[Callable[[JobFacts], tuple[Any, ...]]] = itemgetter(slice(0, -len(_KEPT)))
"""What decisions change of a job: the columns that statements call `Moved`."""


def _type(hint: object) -> str:
    """Return the type of a column; a field that may be None is one that may be null."""
    return next(_TYPES[kind] for kind in getattr(hint, "__args__", (hint,)) if kind in _TYPES)
