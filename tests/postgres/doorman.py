"""A loopback proxy that looks at how a connection starts: it may refuse it, as a server or a pooler would.

What it does to the next connections is `plans`, one each; the rest it does as `always` says.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from tests.postgres.server import Server

_PROTOCOL = 196608
Start = dict[bytes, bytes]
Plan = Callable[[Start], bytes | None]


def let_in(_start: Start) -> bytes | None:
    """Let a connection pass as it is."""
    return None


def hang_up(_start: Start) -> bytes | None:
    """Close it without a word."""
    return b""


def refuse(code: str, says: str) -> Plan:
    """Refuse it in a server's words."""
    return lambda _start: _fatal(code, says)


def as_pgbouncer(start: Start) -> bytes | None:
    """Refuse settings, as PgBouncer does unless it is told to ignore them."""
    return _fatal("08P01", "unsupported startup parameter: options") if b"options" in start else None


def as_pgbouncer_that_ignores(start: Start) -> bytes | None:
    """Take settings and forget them, as PgBouncer does with `ignore_startup_parameters = options`."""
    start.pop(b"options", None)
    return None


class Doorman:
    """One listening port."""

    def __init__(self, server: Server, always: Plan = let_in, plans: tuple[Plan, ...] = ()) -> None:
        self._target = ("127.0.0.1", server.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._always = always
        self.plans = list(plans)
        self.came = 0
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close everything."""
        _close(self._listening, *self._ends)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listening.accept()
                self._ends.append(client)
                threading.Thread(target=self._receive, args=(client,), daemon=True).start()

    def _receive(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error):
            start = _start_of(client)
            if start is None:
                return
            self.came += 1
            answer = (self.plans.pop(0) if self.plans else self._always)(start)
            if answer is not None:
                client.sendall(answer)
                _close(client)
                return
            server = socket.create_connection(self._target)
            self._ends.append(server)
            body = b"".join(name + b"\0" + value + b"\0" for name, value in start.items()) + b"\0"
            server.sendall(struct.pack(">II", len(body) + 8, _PROTOCOL) + body)
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()
            _pump(client, server)


def _start_of(client: socket.socket) -> Start | None:
    """Return what a client says first; encryption is declined, and a cancellation is not for us."""
    while True:
        length, code = struct.unpack(">II", _exactly(client, 8))
        body = _exactly(client, length - 8)
        if code == _PROTOCOL:
            words = body.rstrip(b"\0").split(b"\0")
            return dict(zip(words[::2], words[1::2], strict=True))
        if length > 8:
            return None
        client.sendall(b"N")


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := client.recv(size - len(data))):
        data += more
    return data


def _fatal(code: str, says: str) -> bytes:
    fields = b"".join(
        f"{kind}{text}\0".encode() for kind, text in zip("SVCM", ("FATAL", "FATAL", code, says), strict=True)
    )
    return b"E" + struct.pack(">I", len(fields) + 5) + fields + b"\0"


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _close(source, sink)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
