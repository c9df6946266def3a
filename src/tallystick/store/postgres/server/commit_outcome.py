"""What became of a transaction whose COMMIT was sent and never answered: asked, never guessed.

`Eras` says which server this process writes to, and since when that is certain.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from enum import Enum

import psycopg
from psycopg import errors

from tallystick.clock import SystemClock
from tallystick.core.chain import Era
from tallystick.errors import OutcomeUnknown, StoreError
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, begin, connect, discard
from tallystick.store.postgres.statements import sql

ASK_TRIES_MAX = 60


class Fate(Enum):
    """The two ends of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"


class Lost(Exception):
    """Nothing became durable, and doing it again may succeed."""

    def __init__(self, error: psycopg.Error | StoreError) -> None:
        super().__init__(str(error))
        self.error = error


def fate(address: Address, xid: str | None, server: str, written: Sequence[tuple[str, int, bytes]]) -> Fate:
    """Ask the server what became of a transaction, until it answers; `OutcomeUnknown` if it cannot say.

    Another server than the one that was asked to commit, or the same when it was started again, has numbers
    of its own, or gives numbers out again that were lost with their transactions. There, and where a number
    is said to be durable, what was `written` is looked for: the process that was to commit it is gone.
    """
    if xid is None:
        return Fate.ABORTED  # it had written nothing, so there is nothing to find
    for tries in range(ASK_TRIES_MAX):
        connection: AnsweringConnection | None = None
        try:
            connection = connect(address)
            another = connection.facts.server != server
            if another and not written:
                break
            if another:
                return _fate_of(written, connection, address)
            ((status,),) = connection.execute(sql("xid_status"), (xid,)).fetchall()
            if status == Fate.COMMITTED.value and written:
                return _fate_of(written, connection, address)
        except errors.InvalidParameterValue:
            return Fate.ABORTED  # a number from the future: this server has never seen it
        except (psycopg.Error, StoreError):
            status = None
        finally:
            discard(connection)
        if status in (Fate.COMMITTED.value, Fate.ABORTED.value):
            return Fate(status)
        pause(tries)
    raise OutcomeUnknown(
        f"{address.url} was lost before it said whether this is durable; look before you repeat it",
        url=address.url,
    )


def _fate_of(
    written: Sequence[tuple[str, int, bytes]], connection: AnsweringConnection, address: Address
) -> Fate:
    """Look for every fact of a transaction: all of them are there, or it never was."""
    begin(connection, address)
    jobs, places, hashes = (list(column) for column in zip(*written, strict=True))
    ((missing,),) = connection.execute(sql("missing_places"), (jobs, places, hashes)).fetchall()
    return Fate.ABORTED if missing else Fate.COMMITTED


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
