"""Connections for users' transactions: a few, kept warm, and never handed on in a doubtful state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from psycopg.pq import TransactionStatus

from tallystick.errors import StoreBusy, StoreError
from tallystick.store.postgres.server.address import Address
from tallystick.store.postgres.server.connection import AnsweringConnection, Eras, Lost, connect, discard

CONNECTIONS_MAX = 16
IDLE_MAX = 4
WAIT_SECONDS = 60.0

Begun = TypeVar("Begun")


class Pool:
    """At most so many threads at once have a connection; a later one waits for one, not for ever."""

    def __init__(
        self,
        address: Address,
        eras: Eras,
        *,
        connections_max: int = CONNECTIONS_MAX,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Open nothing yet."""
        self._address = address
        self._eras = eras
        self._connections_max = connections_max
        self._wait_seconds = wait_seconds
        self._places = threading.BoundedSemaphore(connections_max)
        self._holders: set[int] = set()
        self._lock = threading.Lock()
        self._idle: list[AnsweringConnection] = []
        self._closed = False

    @contextmanager
    def connection(
        self, begin: Callable[[AnsweringConnection], Begun]
    ) -> Iterator[tuple[AnsweringConnection, Begun]]:
        """Lend a connection on which a transaction was begun, and what `begin` returned.

        One that comes back inside a transaction, or broken, is not lent again.
        """
        with self._place():
            connection, begun = self._begin(begin)
            try:
                yield connection, begun
            finally:
                self._give(connection)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            discard(connection)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold one of the places.

        A thread that has one needs no other: if all that have one waited for another, none would go on.
        """
        thread = threading.get_ident()
        if thread in self._holders:
            yield
            return
        if not self._places.acquire(timeout=self._wait_seconds):
            raise StoreBusy(
                f"{self._address.url}: all {self._connections_max} connections for transactions were in use "
                f"for {self._wait_seconds:g} s; make them shorter, or work on fewer jobs at once",
                url=self._address.url,
            )
        self._holders.add(thread)
        try:
            yield
        finally:
            self._holders.discard(thread)
            self._places.release()

    def _begin(self, begin: Callable[[AnsweringConnection], Begun]) -> tuple[AnsweringConnection, Begun]:
        """Begin on a connection that is idle, or else on a new one.

        Of one that was idle it is unknown whether the server is still there: if it is lost, nothing was.
        """
        while True:
            idle = self._take_idle()
            connection = idle or self._open()
            try:
                return connection, begin(connection)
            except Lost:
                discard(connection)
                if idle is None:
                    raise
            except BaseException:
                self._give(connection)
                raise

    def _take_idle(self) -> AnsweringConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _open(self) -> AnsweringConnection:
        try:
            connection = connect(self._address, plain=True)
        except StoreError as error:
            raise Lost(error) from error
        self._eras.answered(connection.facts.server)
        return connection

    def _give(self, connection: AnsweringConnection) -> None:
        clean = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if clean and not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        discard(connection)
