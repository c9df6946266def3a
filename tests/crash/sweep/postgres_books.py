"""The books of a trial on a server: read in one moment, by plain SQL, and thrown away when all was well.

Only this module of the harness needs psycopg, and only sweeps on PostgreSQL load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg
from psycopg.sql import SQL, Identifier

from tests.crash.sweep.statements import sql

if TYPE_CHECKING:
    from tests.crash.sweep.place import Place

T = TypeVar("T")


def read(place: Place, books: Callable[[Callable[[str], list[tuple[Any, ...]]]], T]) -> T:
    """Read all books as they are in one moment."""
    with _looking(place) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return books(lambda name: connection.execute(sql(name, "postgres").encode()).fetchall())


def is_quiet(place: Place, name: str) -> bool:
    """Tell whether the process that the server knows by this name has no transaction open."""
    with _looking(place) as connection:
        ((count,),) = connection.execute(sql("in_transaction", "postgres").encode(), [name]).fetchall()
    return int(count) == 0


def drop(place: Place) -> None:
    """Remove the books of a trial."""
    with _looking(place) as connection:
        text: LiteralString = sql("drop_books", "postgres")
        connection.execute(SQL(text).format(Identifier(place.schema)))


@contextmanager
def _looking(place: Place) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(place.server, options=f"-c search_path={place.schema}") as connection:
        yield connection
