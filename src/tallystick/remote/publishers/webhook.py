"""Webhook: a directive is posted to an address that the operator has named, signed, and to nowhere else.

No redirects, no proxies, no cookies. The one door to the network resolves, judges and connects.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import SplitResult, urlunsplit

from tallystick.clock import Clock, SystemClock
from tallystick.errors import PublishFailed
from tallystick.remote.publishers.addresses import Network, is_allowed, networks, read_webhook_url
from tallystick.remote.publishers.endpoint import (
    FAILED,
    FORBIDDEN,
    REFUSED,
    AddressedEndpoint,
    Outgoing,
    Publisher,
    WebAddress,
)
from tallystick.remote.signatures import secret_bytes, signed

if TYPE_CHECKING:
    from tallystick.remote.publishers.connection import Connection

CONNECT_SECONDS: Final = 3.0
_PORTS: Final = {"http": 80, "https": 443}
# The receiver says that it will never take this content; everything else may pass.
_NEVER: Final = frozenset({400, 410, 413, 414, 422})
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Webhook(AddressedEndpoint):
    """Directives are posted to a web address, signed with a secret that its service knows too."""

    needs: ClassVar = ("h11", "webhook")

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
        self._address = WebAddress("webhook", self._url)

    def connect(self, resolve: Resolve | None = None, clock: Clock | None = None) -> Publisher:
        """Return the publisher that posts; names are resolved by the system unless told otherwise."""
        return WebhookPublisher(
            self._url,
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
        url: SplitResult,
        secret: bytes,
        allowed: Sequence[Network],
        *,
        certificates: ssl.SSLContext | None,
        resolve: Resolve,
        clock: Clock,
    ) -> None:
        """Prepare; nothing is connected before the first directive."""
        from tallystick.remote.publishers import connection  # noqa: PLC0415 (needs a package that is an extra)

        self._open, self._errors = connection.open_connection, (OSError, connection.HttpError)
        self._url, self._secret, self._clock = url, secret, clock
        self._allowed, self._resolve = allowed, resolve
        self._certificates = None
        if url.scheme == "https":
            self._certificates = certificates or ssl.create_default_context()
        self._target = urlunsplit(("", "", url.path or "/", url.query, ""))
        # Each try has a connection to itself.
        self._idle: list[Connection] = []

    async def publish(self, outgoing: Outgoing) -> None:
        """Post a directive; any 2xx says that the service has it."""
        stamp = signed(self._secret, outgoing.outbox_id, self._clock.wall_ms() // 1000, outgoing.body)
        about = {
            "host": self._url.netloc.rpartition("@")[2],
            "content-type": "application/json",
            "content-length": str(len(outgoing.body)),
            "user-agent": "tallystick",
            **stamp,
        }
        connection = self._kept() or await self._connect()
        try:
            status = await connection.post(self._target, about, outgoing.body)
        except self._errors as error:
            raise PublishFailed(f"{type(error).__name__}: {error}") from error
        finally:
            if connection.is_idle:
                self._idle.append(connection)
            else:
                connection.close()
        if not 200 <= status < 300:
            final = status in _NEVER
            told = REFUSED if final else FAILED
            raise PublishFailed(f"the service answered {status}", final=final, told=told, status=status)

    async def close(self) -> None:
        """Close what is open."""
        while self._idle:
            self._idle.pop().close()

    def _kept(self) -> Connection | None:
        """Return a connection that was used before, if one is still good: the newest, so that others end."""
        while self._idle:
            kept = self._idle.pop()
            if kept.is_good:
                return kept
            kept.close()
        return None

    async def _connect(self) -> Connection:
        """Connect to an address that was judged, as it was judged: this is the only door to the network."""
        host = self._url.hostname or ""
        port = self._url.port or _PORTS[self._url.scheme]
        judged = [ip_address(each) for each in await self._resolve(host, port)]
        plain = self._certificates is None
        refused = [each for each in judged if not is_allowed(each, self._allowed, plain=plain)]
        if refused or not judged:
            where = refused[0] if refused else "nowhere"
            raise PublishFailed(f"{host} leads to {where}; no connection is made", told=FORBIDDEN)
        error: Exception = OSError("no address")
        for address in judged:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._open(str(address), port, host, self._certificates)
            except (OSError, TimeoutError) as failed:
                error = failed
        raise PublishFailed(f"{type(error).__name__}: {error}") from error


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system knows for a name, each once."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise PublishFailed(f"{host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_kind, address in found))
