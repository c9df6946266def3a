"""What is refused before a route is looked for: foreign names, pages of other sites, large heads.

It is part of the app itself, so that it holds also where the app is mounted in another one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tallystick.core.limits import HEADER_BYTES_MAX
from tallystick.errors import CrossSite, HeadersTooLarge, RequestRefused, WrongHost
from tallystick.http.problems import problem

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_MARKS: Final = len(": \r\n")
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})


class Guard:
    """The outermost layer: checks Host, Origin and Sec-Fetch-Site, and answers whatever goes wrong."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        """Answer under these names alone."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, sending)
        except Exception as error:
            if begun:
                raise
            await problem(error)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        _check_size(headers)
        host = _one(headers, b"host")
        if host is None or name_of(host) not in self._hosts:
            raise WrongHost
        site = _one(headers, b"sec-fetch-site")
        if site is not None and site not in _OWN_SITE:
            raise CrossSite
        origin = _one(headers, b"origin")
        if origin is not None and _authority(origin) != host.decode("latin-1").lower():
            raise CrossSite


def _check_size(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse headers that are too large together, as they are on the wire, with a colon and a line's end."""
    size = sum(len(name) + len(value) + _MARKS for name, value in headers)
    if size > HEADER_BYTES_MAX:
        raise HeadersTooLarge(
            f"the headers have {size} bytes and may have {HEADER_BYTES_MAX}; send fewer or shorter ones",
            size_bytes=size,
            bytes_max=HEADER_BYTES_MAX,
        )


def _one(headers: list[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the only header of a name; two of them could mean two things."""
    found = [value for key, value in headers if key == name]
    if len(found) > 1:
        raise RequestRefused(f"the header {name.decode()} is sent more than once")
    return found[0] if found else None


def name_of(host: bytes) -> str:
    """Return the name in a Host header, without its port.

    >>> name_of(b"LocalHost:8000"), name_of(b"[::1]:80"), name_of(b"a.example")
    ('localhost', '[::1]', 'a.example')
    """
    text = host.decode("latin-1").lower()
    return text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]


def _authority(origin: bytes) -> str | None:
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower() or None
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can come to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
