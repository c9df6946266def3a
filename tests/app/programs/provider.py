"""A provider of charges: a real HTTP server in a process of its own, with a ledger of its own.

It prints its port. Every charge that it makes is a line in the ledger, durable before it answers. The path of
a request says how it behaves: `/charge` answers, `/cut` acts and cuts the connection, `/fail` acts and says
500, `/drop` cuts the connection and does nothing, `/slow` acts when it is told to (`/release`), `/once` acts
once for a key.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock
from typing import Any

_one_at_a_time = Lock()
_one_counts = Lock()
_released = Event()


class Server(ThreadingHTTPServer):
    """Counts the connections that it has accepted and not done with."""

    busy = 0

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, in the order in which they came."""
        with _one_counts:
            self.busy += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Be done with one."""
        super().shutdown_request(request)
        with _one_counts:
            self.busy -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed before it had its answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Provider(BaseHTTPRequestHandler):
    """One request."""

    ledger: Path
    server: Server

    def do_POST(self) -> None:
        """Charge, and answer as the path says."""
        key = self.headers["Idempotency-Key"]
        if self.path == "/release":
            _released.set()
        elif self.path == "/drop":
            self.connection.close()
            return
        else:
            if self.path == "/slow":
                _released.wait(60)
            self._charge(key)
        if self.path in ("/cut", "/slow"):
            self.connection.close()
            return
        self._answer(500 if self.path == "/fail" else 200, {"receipt": f"for {key}"})

    def _charge(self, key: str) -> None:
        with _one_at_a_time:
            if self.path == "/once" and key in self._charged():
                return
            with self.ledger.open("a", encoding="utf-8") as lines:
                lines.write(f"{key}\n")
                lines.flush()
                os.fsync(lines.fileno())

    def _charged(self) -> list[str]:
        return self.ledger.read_text("utf-8").split() if self.ledger.exists() else []

    def do_GET(self) -> None:
        """Say whether there is a charge under a key; and how many requests are under way."""
        key = self.path.removeprefix("/charges/")
        self._answer(200, {"charged": key in self._charged(), "busy": self.server.busy - 1})

    def _answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that the library calls)
        """Say nothing."""


def main(ledger: str) -> None:
    Provider.ledger = Path(ledger)
    server = Server(("127.0.0.1", 0), Provider)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
