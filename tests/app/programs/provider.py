"""A provider of charges: a real HTTP server in a process of its own, with a ledger of its own.

It prints its port. Every charge that it makes is a line in the ledger, durable before it answers. The path of
a request says how it behaves: `/charge` answers, `/cut` acts and cuts the connection, `/fail` acts and says
500.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

_one_at_a_time = Lock()


class Provider(BaseHTTPRequestHandler):
    """One request."""

    ledger: Path

    def do_POST(self) -> None:
        """Charge, and answer as the path says."""
        key = self.headers["Idempotency-Key"]
        with _one_at_a_time, self.ledger.open("a", encoding="utf-8") as lines:
            lines.write(f"{key}\n")
            lines.flush()
            os.fsync(lines.fileno())
        if self.path == "/cut":
            self.connection.close()
            return
        self._answer(500 if self.path == "/fail" else 200, {"receipt": f"for {key}"})

    def do_GET(self) -> None:
        """Say whether there is a charge under a key."""
        charged = self.ledger.read_text("utf-8").split() if self.ledger.exists() else []
        self._answer(200, {"charged": self.path.removeprefix("/charges/") in charged})

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
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
