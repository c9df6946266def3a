"""What is asked of the service, and what it answers. A verb yields these; any client may carry them.

A request that got no answer is sent again by its client, so each may have been done before: a verb
that wrote meets its own row and must know it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

Value: TypeAlias = str | int | bool | None
Values: TypeAlias = Mapping[str, Value]
Condition: TypeAlias = tuple[str, str, str]
"""A property, one of `eq`, `ne`, `ge` and `lt`, and a text; a row without the property is not meant."""


class Row(NamedTuple):
    """One row as it was read."""

    pk: str
    rk: str
    etag: str
    values: Values


class Get(NamedTuple):
    """Read one row; None if it is not there."""

    table: str
    pk: str
    rk: str


class Find(NamedTuple):
    """Read rows of one partition, or of those up to `pk_below`, in the order of their keys."""

    table: str
    pk: str
    low: str = ""
    below: str | None = None
    limit: int | None = None
    where: tuple[Condition, ...] = ()
    pk_below: str | None = None


class Put(NamedTuple):
    """Insert a row, or with `etag` replace the one that has it; `merge` leaves what is not named."""

    table: str
    pk: str
    rk: str
    values: Values
    etag: str | None = None
    merge: bool = False


class Drop(NamedTuple):
    """Delete a row; one that is not there is fine, but not inside `Together`."""

    table: str
    pk: str
    rk: str


class Together(NamedTuple):
    """Write rows of one table and one partition: all of them or none."""

    writes: tuple[Put | Drop, ...]


class Wrote(NamedTuple):
    """It is durable; the tag of each row that is there now."""

    etags: tuple[str, ...]


class ServiceRefusal(Enum):
    """Nothing was written."""

    EXISTS = "there is such a row"
    CHANGED = "the row is not what was read"
    MISSING = "there is no such row"


Request: TypeAlias = Get | Find | Put | Drop | Together
Reply: TypeAlias = "Row | list[Row] | Wrote | ServiceRefusal | None"
T = TypeVar("T")
Asking: TypeAlias = Generator[Request, Reply, T]
"""A verb: it yields requests, is sent the answers, and returns what came of it."""


def get(table: str, pk: str, rk: str) -> Asking[Row | None]:
    """Read one row."""
    reply = yield Get(table, pk, rk)
    assert reply is None or isinstance(reply, Row), "a read of one row is answered so"
    return reply


def find(request: Find) -> Asking[list[Row]]:
    """Read rows."""
    reply = yield request
    assert isinstance(reply, list), "a read of rows is answered so"
    return reply


def write(request: Put | Drop | Together) -> Asking[Wrote | ServiceRefusal]:
    """Write."""
    reply = yield request
    assert isinstance(reply, Wrote | ServiceRefusal), "a write is answered so"
    return reply
