"""A loopback proxy that understands where a COMMIT is, and can lose it or its answer.

What it does to the next COMMIT that passes is `plan`; afterwards it is an honest proxy again. `silent`
swallows everything in both directions while the connections stay open, as a vanished machine does.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from enum import Enum

from tests.postgres.server import Server


class Plan(Enum):
    """What becomes of the next COMMIT."""

    PASS = "it passes"
    BEFORE = "it never reaches the server"
    AFTER = "it reaches the server, which answers into the void"
    AT_ONCE = "it reaches the server, and the connection is gone before the server can answer"
    ENDED = (
        "it is done, and before the server can say that it is ready again, it is told to end the connection"
    )


# "Ready for a query, no transaction is open", and what a backend says that was told to end.
READY = b"Z\0\0\0\5I"
_FATAL = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
TERMINATED = b"E" + struct.pack(">I", len(_FATAL) + 4) + _FATAL


class Proxy:
    """One listening port; two threads a connection.

    `down` refuses new connections, as a server does that is being started.
    """

    def __init__(self, server: Server) -> None:
        self._target = ("127.0.0.1", server.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.plan = Plan.PASS
        self.fired = 0
        self.silent = threading.Event()
        self.down = threading.Event()
        self._deaf: set[socket.socket] = set()
        self._ended: set[socket.socket] = set()
        self._answered = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close everything."""
        self._listening.close()
        self.cut()

    def cut(self) -> int:
        """Close every connection that is open now, and return how many that were."""
        with self._lock:
            pairs, self._pairs = _still_open(self._pairs), []
        for pair in pairs:
            _close(*pair)
        return len(pairs)

    def lead_to(self, server: Server) -> None:
        """Lead to another server from now on; nobody stays connected to the old one."""
        self._target = ("127.0.0.1", server.port)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listening.accept()
                if self.down.is_set():
                    _close(client)
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    _close(client)  # there is no server now; there may be one for the next
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._pairs = [*_still_open(self._pairs), (client, server)]
                for pump in (self._forth, self._back):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        messages = Messages()
        plan = Plan.PASS
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.silent.is_set():
                    continue
                if messages.has_commit(data) and plan is Plan.PASS:
                    plan = self._take_plan()
                if plan is Plan.BEFORE:
                    break
                if plan is Plan.AFTER:
                    self._deaf.add(server)
                if plan is Plan.ENDED:
                    self._ended.add(server)
                server.sendall(data)
                if plan is Plan.AFTER and messages.synced:
                    # Answers leave the server when it is asked for them; then it is done.
                    self._answered.wait(5)
                    self._answered.clear()
                    break
                if plan is Plan.AT_ONCE:
                    break
        _close(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if server in self._deaf:
                    self._answered.set()
                elif server in self._ended and READY in data:
                    client.sendall(data[: data.index(READY)] + TERMINATED)
                    break
                elif not self.silent.is_set():
                    client.sendall(data)
        _close(client, server)

    def _take_plan(self) -> Plan:
        with self._lock:
            plan, self.plan = self.plan, Plan.PASS
            self.fired += plan is not Plan.PASS
        return plan


class Messages:
    """The statements a client sends, followed closely enough to recognise a COMMIT."""

    def __init__(self) -> None:
        self._rest = b""
        self._started = False
        self.synced = False
        self._commits: set[bytes] = set()

    def has_commit(self, data: bytes) -> bool:
        """Take what was sent and tell whether a COMMIT is in it."""
        self._rest += data
        found = False
        while (message := self._next()) is not None:
            kind, body = message
            if self._is_commit(kind, body):
                found, self.synced = True, False
            self.synced = self.synced or kind == b"S"
        return found

    def _next(self) -> tuple[bytes, bytes] | None:
        head = 0 if not self._started else 1
        if len(self._rest) < head + 4:
            return None
        (length,) = struct.unpack_from(">I", self._rest, head)
        if len(self._rest) < head + length:
            return None
        kind, body = self._rest[:head], self._rest[head + 4 : head + length]
        self._rest = self._rest[head + length :]
        self._started = True
        return kind, body

    def _is_commit(self, kind: bytes, body: bytes) -> bool:
        if kind == b"P":
            name, query = body.split(b"\0")[:2]
            self._commits.discard(name)
            if query.strip().upper() == b"COMMIT":
                self._commits.add(name)
        elif kind == b"B":
            return body.split(b"\0")[1] in self._commits
        return kind == b"Q" and body.strip(b"\0 \n").upper() == b"COMMIT"


def _still_open(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> list[tuple[socket.socket, socket.socket]]:
    return [pair for pair in pairs if pair[0].fileno() >= 0]


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
