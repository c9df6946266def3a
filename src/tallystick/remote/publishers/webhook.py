"""Webhook: a directive is posted to an address that the operator has named, signed, and to nowhere else.

No redirects, no proxies, no cookies. The one door to the network resolves, judges and connects.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, ClassVar, Final

from tallystick.clock import Clock, SystemClock
from tallystick.errors import PublishFailed
from tallystick.remote.publishers.addresses import Network, is_allowed, networks, read_webhook_url
from tallystick.remote.publishers.endpoint import Endpoint, Outgoing, Publisher, bare_address
from tallystick.remote.signatures import secret_bytes, signed

if TYPE_CHECKING:
    import httpcore

CONNECT_SECONDS: Final = 3.0
KEPT_SECONDS: Final = 30.0
ANSWER_BYTES_MAX: Final = 64 * 1024
# The receiver says that it will never take this content; everything else may pass.
_NEVER: Final = frozenset({400, 410, 413, 414, 422})
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Webhook(Endpoint):
    """Directives are posted to a web address, signed with a secret that its service knows too."""

    needs: ClassVar = ("httpcore", "webhook")

    def __init__(
        self,
        url: str,
        *,
        secret: str,
        allow_networks: Iterable[str] = (),
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """Check the address; `allow_networks` names what of the inner network it may lie in."""
        self._allowed = networks(allow_networks)
        self._url = read_webhook_url(url, self._allowed)
        self._secret = secret_bytes(secret)
        self._certificates = certificates

    def __repr__(self) -> str:
        """Show where it leads, and no secret."""
        return f"Webhook({self._url.geturl()!r})"

    @property
    def address(self) -> str:
        """Return the way and the web address."""
        return bare_address("webhook", self._url)

    def connect(self, resolve: Resolve | None = None, clock: Clock | None = None) -> Publisher:
        """Return who posts; names are resolved by the system unless told otherwise."""
        return WebhookPublisher(
            self._url.geturl(),
            self._secret,
            self._allowed,
            certificates=self._certificates,
            resolve=resolve or system_addresses,
            clock=clock or SystemClock(),
        )


class WebhookPublisher(Publisher):
    """Posts directives to one web address over connections that stay open."""

    def __init__(
        self,
        url: str,
        secret: bytes,
        allowed: Sequence[Network],
        *,
        certificates: ssl.SSLContext | None,
        resolve: Resolve,
        clock: Clock,
    ) -> None:
        """Prepare; nothing is connected before the first directive."""
        import httpcore  # noqa: PLC0415 (only who posts needs it; an extra)

        self._url, self._secret, self._clock = url, secret, clock
        # Each try has a connection to itself: the pool of the library looks at all of them for each.
        self._connect = partial(
            httpcore.AsyncHTTPConnection,
            httpcore.URL(url).origin,
            ssl_context=certificates or ssl.create_default_context(),
            keepalive_expiry=KEPT_SECONDS,
            network_backend=_door(allowed, resolve, plain=url.startswith("http:")),
        )
        self._idle: list[httpcore.AsyncHTTPConnection] = []
        self._errors = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)

    async def publish(self, outgoing: Outgoing) -> None:
        """Post a directive; any 2xx says that the service has it."""
        stamp = signed(self._secret, outgoing.outbox_id, self._clock.wall_ms() // 1000, outgoing.body)
        about = {"content-type": "application/json", "user-agent": "tallystick", **stamp}
        headers = [(name.encode(), value.encode()) for name, value in about.items()]
        connection, good = await self._connection(), False
        try:
            async with connection.stream(
                "POST", self._url, headers=headers, content=outgoing.body, extensions=_times()
            ) as response:
                await _drop(response)
                status = response.status
            good = True
        except self._errors as error:
            raise PublishFailed(f"{type(error).__name__}: {error}") from error
        finally:
            if good:
                self._idle.append(connection)
            else:
                await connection.aclose()
        if not 200 <= status < 300:
            raise PublishFailed(f"the service answered {status}", final=status in _NEVER, status=status)

    async def close(self) -> None:
        """Close what is open."""
        while self._idle:
            await self._idle.pop().aclose()

    async def _connection(self) -> httpcore.AsyncHTTPConnection:
        """Return a connection that nobody uses, one that was used before if it is still good."""
        while self._idle:
            kept = self._idle.pop()
            if kept.is_available() and not kept.has_expired():
                return kept
            await kept.aclose()
        return self._connect()


def _times() -> dict[str, object]:
    seconds = CONNECT_SECONDS
    return {"timeout": {"connect": seconds, "pool": None, "read": None, "write": None}}


async def _drop(response: httpcore.Response) -> None:
    """Read what the service answers, so that the connection can be used again; too much of it is an error."""
    length = 0
    async for chunk in response.aiter_stream():
        length += len(chunk)
        if length > ANSWER_BYTES_MAX:
            raise PublishFailed(f"the service answered with more than {ANSWER_BYTES_MAX} bytes")


def _door(allowed: Sequence[Network], resolve: Resolve, *, plain: bool) -> httpcore.AsyncNetworkBackend:
    """Return the only way to the network: it connects to addresses that were judged, as they were judged."""
    import httpcore  # noqa: PLC0415 (as above)

    class Door(httpcore.AsyncNetworkBackend):
        def __init__(self) -> None:
            self._behind = httpcore.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109 (as the library passes it)
            local_address: str | None = None,
            socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            found = await resolve(host, port)
            judged = [ip_address(each) for each in found]
            refused = [each for each in judged if not is_allowed(each, allowed, plain=plain)]
            if refused or not judged:
                raise PublishFailed(
                    f"{host} leads to {refused[0] if refused else 'nowhere'}; no connection is made"
                )
            error: Exception = OSError("no address")
            for address in judged:
                try:
                    return await self._behind.connect_tcp(
                        str(address), port, timeout, local_address, socket_options
                    )
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                    error = failed
            raise error

    return Door()


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system knows for a name, each once."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise PublishFailed(f"{host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_kind, address in found))
