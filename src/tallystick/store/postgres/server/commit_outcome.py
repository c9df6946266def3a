"""What became of a transaction whose COMMIT was sent and never answered: asked, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import psycopg
from psycopg import errors

from tallystick.errors import OutcomeUnknown, StoreError
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, begin, connect, discard, pause
from tallystick.store.postgres.statements import sql

ASK_TRIES_MAX = 60


class Fate(Enum):
    """The two ends of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"


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
