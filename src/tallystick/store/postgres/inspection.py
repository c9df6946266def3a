"""How a schema on PostgreSQL shows itself to people who check it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tallystick.store.inspection import Health, Inspection, WorkerLeases
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.talking import Reader, Rows
from tallystick.store.postgres.writing import Times
from tallystick.store.sql.effects import DoubtReads
from tallystick.store.sql.reads import Reads

_OLDEST_TRANSACTION_SECONDS = 300
# Nothing of ours writes for so long; a user's transaction with a submission in it may.
_HOLDER_MS_MAX = 1_000

T = TypeVar("T")


class PostgresInspection(Reads, DoubtReads):
    """The reads of a check, on the connection that reads."""

    def __init__(
        self, address: Address, reader: Reader, times: Callable[[], Times], rows: Rows | None = None
    ) -> None:
        """Look through the store's own way to read, or through one that sees one instant."""
        self._address = address
        self._times = times
        self._reader = reader
        self._rows: Rows = rows or reader.rows

    def at_once(self, ask: Callable[[Inspection], T]) -> T:
        """Let a function read several things of one instant, in a transaction that only reads."""
        return self._reader.at_once(
            lambda rows: ask(PostgresInspection(self._address, self._reader, self._times, rows))
        )

    def health(self, jobs_max: int | None = None) -> Health:  # noqa: ARG002 (it looks at no job)
        """Examine the server, the size of the books, and which session keeps vacuum from its work."""
        ((version, synchronous, fsync, schema_version, size, oldest, whose),) = self.rows("health")
        facts: dict[str, object] = {
            "url": self._address.url,
            "schema": self._address.schema,
            "server_version": version,
            "synchronous_commit": synchronous,
            "fsync": fsync,
            "schema_version": schema_version,
            "size_bytes": size,
            "oldest_transaction_seconds": oldest,
            "oldest_transaction": whose,
        }
        problems, warnings = [], []
        if fsync != "on":
            problems.append("fsync is off: a crash of the machine may destroy the database")
        if synchronous == "off":
            warnings.append(
                "synchronous_commit is off: a crash of the server may lose the newest transactions"
            )
        if oldest > _OLDEST_TRANSACTION_SECONDS:
            warnings.append(
                f"a transaction has been open for {oldest} seconds and keeps vacuum from its work ({whose}); "
                "let it end, or end it with pg_terminate_backend, and set idle_in_transaction_session_timeout"
            )
        for held_ms, holder in self.rows("long_holder"):
            if held_ms > _HOLDER_MS_MAX:
                warnings.append(
                    f"a transaction that has written to the books has been open for {held_ms / 1000:.1f} s "
                    f"({holder}); what needs the same rows or keys waits for it: let it end"
                )
        return Health(facts, tuple(problems), tuple(warnings))

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return the leases of live attempts by worker, those that lost most first."""
        times = self._times()
        return [WorkerLeases._make(row) for row in self.rows("leases", (times.epoch, times.lease, limit))]

    def running_in_queues(self, limit: int) -> dict[str, int]:
        """Return how many jobs of each queue run, in so many leases at most."""
        times = self._times()
        return dict(self.rows("running_in_queues", (times.epoch, times.lease, limit)))

    def lease_clock(self) -> tuple[str, int]:
        """Return the clock that leases are on, and its instant: that of the server, unless a test owns it."""
        times = self._times()
        ((now,),) = self.rows("now", [times.lease])
        return times.epoch, now

    def rows(self, name: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return self._rows(name, parameters)
