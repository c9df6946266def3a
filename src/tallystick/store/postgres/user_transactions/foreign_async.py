"""A transaction that the user began on an event loop: psycopg's async connection, or SQLAlchemy's session.

What is written there is the same as in every transaction. So it runs in a thread, and each of its statements
is sent on the loop that the connection belongs to, while the task that asked for it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from tallystick.errors import BadInput, StoreMisused
from tallystick.store.api import Bundle, Outcome
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.user_transactions.foreign import apply_within, check_carries
from tallystick.store.postgres.user_transactions.home import Home
from tallystick.store.postgres.writing import Times


class _Statement(NamedTuple):
    """What a statement brought."""

    rowcount: int
    rows: list[tuple[Any, ...]]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return its rows."""
        return self.rows


class _LoopTalk:
    """The user's connection on its loop, spoken to from a thread."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.given_up = False

    def execute(self, query: bytes, params: Sequence[object] = ()) -> _Statement:
        """Send one statement and wait for its answer."""
        if self.given_up:
            raise StoreMisused("the task that submitted this was cancelled")
        return asyncio.run_coroutine_threadsafe(self.ask(query, params), self._loop).result()

    async def ask(self, query: bytes, params: Sequence[object] = ()) -> _Statement:
        """Send one statement."""
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=tuple_row)
        await cursor.execute(query, params)
        return _Statement(cursor.rowcount, await cursor.fetchall() if cursor.description else [])

    def pipeline(self) -> AbstractContextManager[object]:
        """Send statements one by one: the connection is the user's, and its mode is too."""
        return nullcontext()


async def apply_on_loop(
    thing: object, bundles: Sequence[Bundle], home: Home, address: Address, times: Callable[[], Times]
) -> list[Outcome]:
    """Write our bundles in a transaction of the user, without blocking its loop."""
    connection = await _async_connection(thing)
    check_carries(connection)
    talk = _LoopTalk(connection)
    if not home.knows(connection):
        found = (await talk.ask(*home.question)).rows
        await asyncio.to_thread(home.compare, connection, found)

    def write() -> list[Outcome]:
        return [apply_within(talk, bundle, address, times()) for bundle in bundles]

    writing = asyncio.ensure_future(asyncio.to_thread(write))
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        # Nothing may be said on the connection any more when its owner goes on with it.
        talk.given_up = True
        await asyncio.wait([writing])
        raise


async def _async_connection(thing: object) -> psycopg.AsyncConnection[Any]:
    """Return the psycopg connection behind an async connection or session of the user."""
    found: Any = thing
    if hasattr(found, "sync_session"):
        found = await found.connection()
    if hasattr(found, "get_raw_connection"):
        found = (await found.get_raw_connection()).driver_connection
    if isinstance(found, psycopg.AsyncConnection):
        return found
    raise BadInput(
        "on an event loop within= takes a psycopg AsyncConnection, or an SQLAlchemy AsyncSession or "
        f"AsyncConnection of an engine postgresql+psycopg://; not {type(thing).__name__}"
    )
