"""Serving the HTTP API in a process of its own, with limits for slow and greedy connections."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tallystick.core.limits import HEADER_BYTES_MAX
from tallystick.core.remote.keys import SCOPES
from tallystick.core.watching.binding import split_bind
from tallystick.dashboard.app import Dashboard
from tallystick.dashboard.layers import Readable
from tallystick.defaults import TENANT
from tallystick.errors import BadInput
from tallystick.http.app import HttpApp, http_app
from tallystick.http.guard import LOOPBACK_NAMES, is_loopback

if TYPE_CHECKING:
    from tallystick.app.api.tally import Tally

HEADER_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 30
GRACE_SECONDS: Final = 10
CONNECTIONS_MAX: Final = 1_000
UI: Final = "/ui"
"""Where the dashboard is."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)


class Served(NamedTuple):
    """What people are told: the address, and the key that was made for the life of the process, if any."""

    url: str
    key: str | None
    # A link to the dashboard that logs its first user in; None if there is no dashboard.
    dashboard: str | None = None


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that gives a client a few seconds to send its request."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what came; a head that has begun is to be whole in time."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        waits = self.conn.their_state is h11.IDLE
        if not waits:
            self._forget()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _forget(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _give_up(self) -> None:
        self._limit = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


class _HttpServer(uvicorn.Server):
    """A server that answers clients that wait for work as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, app: HttpApp, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._http = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, then say so."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and SIGINT, and leave what comes after that to the caller."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old = {number: signal.signal(number, self.handle_exit) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Answer the clients that wait for work, and take no more requests."""
        self._http.api.news.close_soon()
        super().handle_exit(sig, frame)


_OPTIONS: Final[dict[str, Any]] = {
    "http": PatientProtocol,
    "ws": "none",
    "lifespan": "on",
    "log_config": None,
    "access_log": False,
    "proxy_headers": False,
    "server_header": False,
    "h11_max_incomplete_event_size": HEADER_BYTES_MAX,
    "limit_concurrency": CONNECTIONS_MAX,
    "timeout_keep_alive": KEEP_ALIVE_SECONDS,
    "timeout_graceful_shutdown": GRACE_SECONDS,
}


def serve(
    app: Tally,
    *,
    bind: str,
    hosts: Sequence[str],
    in_flight_max: int,
    announce: Callable[[Served], None],
    dashboard: bool = True,
    runs_root: str | None = None,
    tls_in_front: bool | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT: requests under way are answered first.

    `tls_in_front` says that browsers come by TLS, through a proxy. If it is left out they do so where the
    server has names, or can be reached from elsewhere.
    """
    host, port = split_bind(bind)
    if not is_loopback(host) and not hosts:
        raise BadInput(
            f"{host} can be reached from elsewhere: say under which names with --host api.example.com",
            bind=bind,
        )
    names = {*LOOPBACK_NAMES, *hosts} if is_loopback(host) else set(hosts)
    # Behind a proxy, which has a name or speaks TLS, others than this machine come to a loopback address too.
    is_private = is_loopback(host) and not hosts and not tls_in_front
    http = http_app(
        app,
        hosts=names,
        in_flight_max=in_flight_max,
        sweeps=True,
        open_docs=is_private,
        open_metrics=is_private,
    )
    key = None
    if not app.runtime().store.keys():
        services = app.asked_services
        scopes = [scope for scope in SCOPES if scope != "work" or services]
        key = http.api.keyring.make_own(app.runtime().ids, TENANT, scopes, services)
    tls = bool(hosts) or not is_loopback(host) if tls_in_front is None else tls_in_front
    link = _with_dashboard(http, names, runs_root, secure=tls) if dashboard else None
    listener = listening(host, port)
    port = listener.getsockname()[1]
    url = seen_at(host, port, (), tls=False)
    page = None if link is None else f"{seen_at(host, port, hosts, tls=tls)}{link}"
    served = Served(url, key, page)
    server = _HttpServer(uvicorn.Config(http, **_OPTIONS), http, lambda: announce(served))
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()


def seen_at(host: str, port: int, names: Sequence[str], *, tls: bool) -> str:
    """Return the address under which a browser reaches a server that listens at host and port.

    A proxy with TLS is at the usual port of its name. Without one, an address that other machines reach is
    named by its first name, and one that only this machine reaches by itself.

    >>> seen_at("0.0.0.0", 8000, ["a.example", "b.example"], tls=True)
    'https://a.example'
    >>> seen_at("0.0.0.0", 8000, ["a.example"], tls=False), seen_at("::1", 8000, [], tls=False)
    ('http://a.example:8000', 'http://[::1]:8000')
    """
    if tls and names:
        return f"https://{names[0]}"
    if names and not is_loopback(host):
        return f"http://{names[0]}:{port}"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _with_dashboard(http: HttpApp, names: Iterable[str], runs_root: str | None, *, secure: bool) -> str:
    """Put the dashboard beside the API, and return the path of a link into it."""
    pages = Dashboard(
        http.api.app,
        hosts=names,
        keyring=http.api.keyring,
        news=http.api.news,
        secure=secure,
        runs_root=runs_root,
    )
    http.mount(UI, pages, partial(Readable, below=UI))
    return f"{UI}{pages.link()}"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Its protocol is named, so that every connection has TCP_NODELAY: the body of an answer does not wait until
    its head is acknowledged.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise BadInput(f"nothing can listen at {host}:{port}: {error.strerror or error}") from None
    return listener
