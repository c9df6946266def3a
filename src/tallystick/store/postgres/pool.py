"""Connections for users' transactions: a few, kept warm, and never handed on in a doubtful state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.pq import TransactionStatus

from tallystick.errors import StoreError
from tallystick.store.postgres.address import Address
from tallystick.store.postgres.connection import AnsweringConnection, connect, discard
from tallystick.store.postgres.fate import Lost

CONNECTIONS_MAX = 16
IDLE_MAX = 4


class Pool:
    """At most so many connections at once; whoever comes later waits for one."""

    def __init__(self, address: Address, *, connections_max: int = CONNECTIONS_MAX) -> None:
        """Open nothing yet."""
        self._address = address
        self._places = threading.BoundedSemaphore(connections_max)
        self._lock = threading.Lock()
        self._idle: list[AnsweringConnection] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[AnsweringConnection]:
        """Lend a connection; one that comes back inside a transaction, or broken, is not lent again."""
        with self._places:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give(connection)

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            discard(connection)

    def _take(self) -> AnsweringConnection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        try:
            return connect(self._address, plain=True)
        except StoreError as error:
            raise Lost(error) from error

    def _give(self, connection: AnsweringConnection) -> None:
        clean = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if clean and not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        discard(connection)
