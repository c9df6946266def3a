"""One transaction on loan to a user's function, and what of ours was written in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import psycopg

from tallystick.store.api import Bundle, Fence, Outcome
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, discard
from tallystick.store.postgres.statements import sql
from tallystick.store.postgres.writer import PostgresBatch
from tallystick.store.postgres.writing import Times

_log = logging.getLogger("tallystick.store")


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

    def keep_report(self, fence: Fence) -> None:
        """Keep a stale report for people, in a transaction of its own: the user's was undone.

        If the server does not take it, the caller hears all the same that the lease is over.
        """
        connection = self.connection
        if connection.closed:
            return
        rows = f'[["{fence.job_id}",{fence.attempt},"{fence.lease_id}","RecordStep"]]'
        try:
            with connection.pipeline():
                connection.execute(b"BEGIN")
                connection.execute(sql("use_path"), (self._address.path,))
                connection.execute(sql("insert_stale_reports"), (rows, self._times().wall))
                connection.execute(b"COMMIT")
        except psycopg.Error as error:
            discard(connection)
            about = {"action": "report.not_kept", "job_id": fence.job_id}
            _log.warning(
                "job %s: a report that came too late was not kept, %s", fence.job_id, error, extra=about
            )
