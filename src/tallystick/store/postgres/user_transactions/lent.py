"""One transaction on loan to a user's function, and what of ours was written in it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from tallystick.store.api import Bundle, Outcome
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, discard
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.store.postgres.writing import Times


class Lent:
    """A connection with an open transaction, and the places in chains that it has taken."""

    def __init__(self, connection: AnsweringConnection, address: Address, times: Callable[[], Times]) -> None:
        """Take over a transaction that has begun."""
        self.connection = connection
        self._address = address
        self._times = times
        self._batches: list[PostgresBatch] = []
        self.xid: str | None = None
        self.server = ""

    @property
    def wakes(self) -> bool:
        """Tell whether there may be work for others in it."""
        return any(batch.wakes for batch in self._batches)

    def written(self) -> list[tuple[str, int, bytes]]:
        """Return every fact of ours in it."""
        return [place for batch in self._batches for place in batch.written()]

    def batch(self) -> PostgresBatch:
        """Return a writer in this transaction, whose places are given back if it is undone."""
        self._batches.append(PostgresBatch(self.connection, self._address, self._times()))
        return self._batches[-1]

    def apply(self, bundle: Bundle) -> Outcome:
        """Write one of our bundles between the user's statements."""
        return self.batch().between(bundle)

    def doubt(self) -> None:
        """Note that it is unknown whether this is durable; its places are neither kept nor given back."""
        for batch in self._batches:
            batch.doubt()
        self._batches.clear()

    def undo(self) -> None:
        """Roll back, or make sure that the server does."""
        for batch in reversed(self._batches):
            batch.rewind()
        try:
            self.connection.execute(b"ROLLBACK")
        except psycopg.Error:
            discard(self.connection)
