"""Connections: opened when needed, given up when the server keeps silent, and what their errors mean.

What was lost with a connection is begun again. `Eras` says which server this process writes to, and since
when that is certain.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

from tallystick.clock import SystemClock
from tallystick.core.chain import Era
from tallystick.errors import (
    BadInput,
    ChangeRefused,
    Misuse,
    SemaphoreUnderflow,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    TallyError,
)
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.statements import sql
from tallystick.store.refusals import statement_of

RV = TypeVar("RV")

# Nothing was done, and doing it again may well succeed.
TRANSIENT = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.ReadOnlySqlTransaction,
)

# This very request cannot be stored, at any time and by any caller.
REFUSALS = (psycopg.IntegrityError, psycopg.DataError, errors.RaiseException)


# A database that holds every text as it is sent: SQL_ASCII takes bytes for what they are, and ours are UTF-8.
ENCODINGS = ("UTF8", "SQL_ASCII")

_PLANNED_ONCE = "-c plan_cache_mode=force_generic_plan"

_OPERATIONAL = (psycopg.OperationalError, psycopg.InterfaceError)

# How libpq says that there is no such database: an error of a connection has no class and no code.
_NO_DATABASE = re.compile(r'database ".*" does not exist')
# The same of a server that is away for a moment: it starts, stops, recovers, or has just ended our session.
_AWAY = re.compile(
    "the database system is |terminating connection|server closed the connection|reset by peer"
)
# How PgBouncer refuses what a connection of ours is told when it starts.
_POOLER = re.compile("unsupported startup parameter")


class ServerFacts(NamedTuple):
    """What must be known about a server before it is written to."""

    server: str
    search_path: str


class ServerAnswer(Protocol):
    """What a statement brought."""

    @property
    def rowcount(self) -> int:
        """Return how many rows it wrote or found."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return its rows."""
        ...


class Talk(Protocol):
    """What our statements need of a connection."""

    def execute(self, query: bytes, params: Sequence[object] = ()) -> ServerAnswer:
        """Send one statement."""
        ...

    def pipeline(self) -> AbstractContextManager[object]:
        """Let statements travel together."""
        ...


class AnsweringConnection(psycopg.Connection[Any]):
    """A connection that does not wait for ever: a peer may vanish without a word."""

    answer_seconds: float = 30.0
    facts: ServerFacts = ServerFacts("", "")
    # Whether a user's function has it, to which the bounds of the transaction do not belong.
    bounded: bool = False

    def commit(self) -> None:
        """Commit, unless a user's function has it."""
        self.refuse_bound("commit")
        super().commit()

    def rollback(self) -> None:
        """Roll back, unless a user's function has it."""
        self.refuse_bound("rollback")
        super().rollback()

    def refuse_bound(self, verb: str) -> None:
        """Refuse to a user's function what would end its transaction."""
        if self.bounded:
            raise Misuse(f"a tx has no {verb}: it is kept when its function returns, and undone if it raises")

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for the server, but not longer than it may take to answer."""
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except errors._WaitTimeout as error:  # noqa: SLF001 (psycopg has no public name for it)
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer from the server within {limit:g} s") from error


def connect(address: Address, *, plain: bool = False, writes: bool = False) -> AnsweringConnection:
    """Open a connection to a primary; `plain` leaves its settings to the server, for statements of users.

    One that `writes` plans each statement once: ours look rows up by their keys whatever the parameters are,
    and to plan the search of a claim takes longer than the search.

    A replica is refused: its answers may be old, and decisions are made on the primary alone.
    """
    options: dict[str, Any] = {}
    if not (address.pooled or plain):
        own = address.conninfo.get("options")
        settings = f"{address.settings} {_PLANNED_ONCE}" if writes else address.settings
        options["options"] = f"{own} {settings}" if own else settings
    try:
        connection = AnsweringConnection.connect(
            autocommit=True,
            prepare_threshold=None if address.pooled else 5,
            cursor_factory=psycopg.RawCursor,
            **{**address.conninfo, **options},
        )
        connection.answer_seconds = address.answer_ms / 1000
        ((replica, server, path, encoding),) = connection.execute(sql("server_facts")).fetchall()
    except psycopg.Error as error:
        if _POOLER.search(str(error)):
            raise _behind_a_pooler(address) from error
        raise translated(error, address) from error
    if replica:
        discard(connection)
        raise StoreReadOnly(
            f"{address.url} is a replica; decisions are made on the primary alone", url=address.url
        )
    if encoding not in ENCODINGS:
        discard(connection)
        raise StoreError(
            f"{address.url}: this database is encoded in {encoding}, which cannot hold every text; "
            "make one with ENCODING 'UTF8' TEMPLATE template0",
            url=address.url,
            encoding=encoding,
        )
    if options and path != address.path:
        discard(connection)
        raise _behind_a_pooler(address)
    connection.facts = ServerFacts(server, path)
    return connection


def _behind_a_pooler(address: Address) -> BadInput:
    """Return the error of an address behind which the settings of a connection do not arrive."""
    return BadInput(
        f"{address.url} is a pooler, which gives a connection no settings of its own; "
        "add pooler=transaction to the address",
        url=address.url,
    )


def begin(connection: Talk, address: Address, how: bytes = b"BEGIN") -> None:
    """Begin a transaction that knows our schema, on a connection that need not."""
    connection.execute(how)
    if address.pooled:
        limits = (str(address.statement_ms), str(address.lock_ms))
        connection.execute(sql("begin_settings"), (address.path, *limits))


def read(
    connection: AnsweringConnection, address: Address, name: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Run one statement that only reads and return its rows: one round trip, nothing left open."""
    if not address.pooled:
        return connection.execute(sql(name), parameters).fetchall()
    with connection.pipeline():
        begin(connection, address)
        cursor = connection.execute(sql(name), parameters)
        connection.execute(b"COMMIT")
    return cursor.fetchall()


def discard(connection: AnsweringConnection | None) -> None:
    """Close a connection that cannot be trusted any more."""
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()


def is_lost(connection: AnsweringConnection, error: psycopg.Error) -> bool:
    """Tell whether the connection is gone, which says nothing about what the server did.

    An error that has no SQLSTATE was not made by the server: the library lost the thread of the conversation.
    (It makes others, about statements that it cannot send; those are no operational errors.)
    """
    if connection.closed or (error.sqlstate is None and isinstance(error, _OPERATIONAL)):
        return True
    return isinstance(
        error,
        errors.AdminShutdown
        | errors.CrashShutdown
        | errors.CannotConnectNow
        | errors.IdleInTransactionSessionTimeout,
    )


def is_away(error: BaseException | None) -> bool:
    """Tell whether this says that the server is away for a moment, and not that it is not there at all."""
    passing = errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow
    return isinstance(error, passing) or (
        isinstance(error, psycopg.OperationalError) and _AWAY.search(str(error)) is not None
    )


class RowMoved(errors.SerializationFailure):
    """A row was changed between a look and our lock: begin again."""


def row_moved() -> RowMoved:
    """Return the error for such a row; the server knows nothing of it, and the transaction goes on."""
    return RowMoved("a row was changed by others while it was being taken")


def refusal(error: psycopg.Error) -> TallyError:
    """Return the outcome of a request that the database refused."""
    text = str(error).strip()
    statement = statement_of(error)
    fields = {"statement": statement, "postgres": text}
    if "semaphore" in (error.diag.constraint_name or ""):
        return SemaphoreUnderflow(**fields)
    if isinstance(error, psycopg.DataError):
        return BadInput(f"a value cannot be stored: {text}", **fields)
    return ChangeRefused(f"the database refused {statement}: {text}", **fields)


def translated(error: psycopg.Error, address: Address) -> StoreError:
    """Return our error for one of PostgreSQL's, saying what to do; a store error is never the job's error."""
    text = str(error).strip()
    where = address.url
    fields = {"url": where, "postgres": text}
    match error:
        case errors.DiskFull():
            return StoreFull(f"{where}: no space left; nothing was lost, free some and go on", **fields)
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return StoreReadOnly(
                f"{where}: this role may not do that, see the guide for its rights: {text}", **fields
            )
        case _ if isinstance(error, errors.InvalidCatalogName) or _NO_DATABASE.search(text):
            return StoreMissing(f"{where}: there is no such database; create it first", path=where, **fields)
        case errors.UndefinedTable() | errors.UndefinedFunction() | errors.UndefinedColumn():
            return StoreCorrupt(f"{where}: the schema is not as we left it: {text}", **fields)
        case errors.DeadlockDetected() | errors.LockNotAvailable() | errors.SerializationFailure():
            return StoreBusy(f"{where}: others held the same rows for too long: {text}", **fields)
        case _:
            return StoreError(f"{where}: {text}", **fields)


class Lost(Exception):
    """Nothing became durable, and doing it again may succeed."""

    def __init__(self, error: psycopg.Error | StoreError) -> None:
        super().__init__(str(error))
        self.error = error


def pause(tries: int) -> None:
    """Wait a little before the next try, longer every time."""
    threading.Event().wait(min(0.01 * 2**tries, 0.5))


def retrying(
    work: Callable[[], object],
    tries_max: int,
    give_up: Callable[[Lost], BaseException],
    *,
    seconds_max: float = math.inf,
) -> object:
    """Do work until it is done; what was lost on the way is begun again, a bounded number of times.

    After `seconds_max` no other try is begun: a machine that is gone keeps each of them waiting for long.
    """
    clock = SystemClock()
    until = clock.monotonic() + seconds_max
    tries = 0
    while True:
        try:
            return work()
        except Lost as lost:
            tries += 1
            if tries >= tries_max or clock.monotonic() >= until:
                raise give_up(lost) from lost.error
            pause(tries)


def given_up(address: Address, lost: Lost) -> StoreError:
    """Return our error for what was lost too often."""
    return translated(lost.error, address) if isinstance(lost.error, psycopg.Error) else lost.error


class Eras:
    """The era of one store: over when a connection is lost, or when another server answers.

    A server that crashes ends all of its connections. With `synchronous_commit` off it may come back without
    what it had acknowledged last, and a standby that was behind may take its place.
    """

    def __init__(self) -> None:
        """Begin before any server has answered."""
        self.now = Era()

    def answered(self, server: str) -> bool:
        """Note which server has answered, and tell whether it is the one that was believed to be there."""
        same = server == self.now.server
        if not same:
            self.now = Era(server)
        return same

    def lost(self) -> None:
        """Note that a connection was lost: what the server remembers is unknown."""
        self.now = Era(self.now.server)
