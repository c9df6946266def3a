"""How a schema on PostgreSQL shows itself to people who check it."""

from __future__ import annotations

from collections.abc import Callable

from tallystick.core.book import ActivityRow, AttemptRow, Book, Content
from tallystick.core.pictures import Activity, Message, Place
from tallystick.core.told import told
from tallystick.store.api import Event
from tallystick.store.inspection import Health, StaleReports, WorkerLeases
from tallystick.store.postgres.address import Address
from tallystick.store.postgres.reads import Reader
from tallystick.store.postgres.writing import Times

_OLDEST_TRANSACTION_SECONDS = 300


class PostgresInspection:
    """The reads of a check, on the connection that reads."""

    def __init__(self, address: Address, reader: Reader, times: Callable[[], Times]) -> None:
        """Look through the store's own way to read."""
        self._address = address
        self._times = times
        self._reader = reader

    def health(self) -> Health:
        """Examine the server, the size of the books, and who keeps vacuum from its work."""
        ((version, synchronous, fsync, schema_version, size, oldest, whose),) = self._reader.rows(
            "health", []
        )
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
        return Health(facts, tuple(problems), tuple(warnings))

    def book(self, job_id: str) -> Book | None:
        """Return the book of one job."""
        rows = self._reader.rows("book", [job_id])
        return Book(*rows[0]) if rows else None

    def books(self, *, after: str | None, limit: int) -> list[Book]:
        """Return a page of books, newest job first."""
        return [Book(*row) for row in self._reader.rows("books", [after, str(limit)])]

    def facts(self, job_id: str, *, after: int, limit: int) -> list[Event]:
        """Return the facts of a job that follow number `after`; a limit of -1 returns all."""
        page = [job_id, after, str(limit)]
        events = [Event(*row) for row in self._reader.rows("facts", page)]
        events += [told(job_id, *row) for row in self._reader.rows("step_facts", page)]
        events.sort(key=lambda event: event.n)
        return events if limit < 0 else events[:limit]

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """Return the attempts at a job itself, oldest first."""
        rows = self._reader.rows("attempts", [job_id])
        return [AttemptRow(*row)._replace(charged=bool(row[7])) for row in rows]

    def activities(self, job_id: str, *, after: Place, limit: int) -> list[ActivityRow]:
        """Return the waits, sleeps and groups of a job that stand behind a place, in order."""
        rows = self._reader.rows("activities", [job_id, *after, str(limit)])
        return [ActivityRow(Activity(*row), n, copy) for *row, n, copy in rows]

    def messages(self, job_id: str, *, after: str, limit: int) -> list[Message]:
        """Return the messages of a job behind a guid, in order."""
        return [Message(*row) for row in self._reader.rows("messages", [job_id, after, str(limit)])]

    def open_children(self, job_id: str) -> dict[str, int]:
        """Return how many children of each group of a job have not ended."""
        return dict(self._reader.rows("open_children", [job_id]))

    def content(self, job_id: str) -> Content | None:
        """Return what a submission is known by."""
        return next((Content(*row) for row in self._reader.rows("content", [job_id])), None)

    def lease_clock(self) -> tuple[str, int]:
        """Return the clock that leases are on, and its instant: that of the server, unless a test owns it."""
        times = self._times()
        ((now,),) = self._reader.rows("now", [times.lease])
        return times.epoch, now

    def held(self, limit: int) -> list[Book]:
        """Return jobs that wait for a person, newest first."""
        return [Book(*row) for row in self._reader.rows("held", [str(limit)])]

    def leases(self, limit: int) -> list[WorkerLeases]:
        """Return the leases of live attempts by worker, those that lost most first."""
        times = self._times()
        return [
            WorkerLeases(*row) for row in self._reader.rows("leases", [times.epoch, times.lease, str(limit)])
        ]

    def stale_reports(self) -> StaleReports:
        """Count the reports that came too late."""
        return StaleReports(*self._reader.rows("count_stale_reports", [])[0])
