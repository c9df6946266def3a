"""A service behind a webhook: it keeps what it gets, and answers as a test tells it to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def directive(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body)


class Receiver:
    """Answers 204 unless told otherwise; `connections` counts every connection, also without a request."""

    def __init__(self, certificates: ssl.SSLContext | None = None) -> None:
        self.got: list[Got] = []
        self.connections = 0
        self.answer: Callable[[Got], tuple[int, dict[str, str], bytes]] = lambda _got: (204, {}, b"")
        self.held = threading.Event()
        self.held.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got = Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                receiver.got.append(got)
                receiver.held.wait(60)
                status, headers, answer = receiver.answer(got)
                self.send_response(status)
                for name, value in {"content-length": str(len(answer)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_args: object) -> None:
                """Stay silent."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def process_request(self, request: Any, address: Any) -> None:
                receiver.connections += 1
                super().process_request(request, address)

            def handle_error(self, request: Any, address: Any) -> None:
                """A relay that hangs up is what some tests are about."""

        self.scheme = "http"
        self.server = Server(("127.0.0.1", 0), Handler)
        if certificates is not None:
            self.scheme = "https"
            # The handshake is made by the thread of the connection, so that one that fails holds nobody up.
            self.server.socket = certificates.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"


@contextmanager
def receiving(certificates: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver(certificates)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.held.set()
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()
