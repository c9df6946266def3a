"""The HTTP API on a port of this machine, in a thread, with or without https."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from tallystick import RemoteStep, Tally
from tallystick.app.api.job import Job
from tallystick.app.remote.api_keys import make_key
from tallystick.http import http_app
from tallystick.remote import RemoteWorker
from tests.patience import wait_until
from tests.remote.certificates import Certificate
from tests.remote.test_publish import command


class Served(NamedTuple):
    app: Tally
    url: str
    key: str

    def submit(self, count: int) -> list[Job[Any]]:
        return [self.app.command(command(n)) for n in range(count)]


@contextmanager
def served(store: str, certificate: Certificate | None = None) -> Iterator[Served]:
    """Serve an app with one protocol of one step for the service ocr."""
    app = Tally(store)
    app.protocol("p", request_types=["scan"], steps=[RemoteStep("s0", service="ocr")])
    runtime = app.runtime()
    _kept, key = make_key(runtime.committer, runtime.ids, "acme", ("work",), ("ocr",))
    tls = {"ssl_certfile": certificate.file, "ssl_keyfile": certificate.key} if certificate else {}
    server = uvicorn.Server(uvicorn.Config(http_app(app), port=0, log_config=None, lifespan="on", **tls))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        wait_until(lambda: server.started, "a server")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(app, f"http{'s' if tls else ''}://127.0.0.1:{port}", key)
    finally:
        server.should_exit = True
        thread.join(60)
        app.close()


@contextmanager
def at_work(api: Served, handler: Callable[[Any], Any], **options: Any) -> Iterator[RemoteWorker]:
    """Let a remote worker do the service in a thread; it has stopped at the end."""
    worker = RemoteWorker(api.url, api.key, services=["ocr"], **options)
    worker.handle("ocr")(handler)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        assert not thread.is_alive()
