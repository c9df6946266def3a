"""The line to the HTTP API: one connection that is kept, and made again when it breaks."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tallystick.errors import BadInput

ANSWER_SECONDS: Final = 30.0
LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same is to be said again."""


class Answered(NamedTuple):
    """What the API said."""

    status: int
    body: bytes

    @property
    def is_final(self) -> bool:
        """Tell whether saying it again would change nothing."""
        return self.status not in LATER


class LineBroken(Exception):
    """No answer came: what was said may have been heard or not, so it is to be said again."""


class Line:
    """One connection; for one thread at a time."""

    def __init__(
        self, url: str, seconds: float = ANSWER_SECONDS, certificates: ssl.SSLContext | None = None
    ) -> None:
        """Remember where to connect; nothing is done before the first call."""
        # What is wrong may hold secrets, so it is not shown.
        wrong = BadInput("this is not an address of the API; write http://HOST:PORT")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not host:
            raise wrong
        self._connect = partial(HTTPConnection, host, port, timeout=seconds)
        if parts.scheme == "https":
            self._connect = partial(HTTPSConnection, host, port, timeout=seconds, context=certificates)
        self._prefix = parts.path.rstrip("/")
        self._connection: HTTPConnection | None = None

    def call(self, method: str, path: str, bearer: str, body: bytes | None = None) -> Answered:
        """Say something and return the answer, or raise `LineBroken`."""
        headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        try:
            connection.request(method, f"{self._prefix}{path}", body, headers)
            answer = connection.getresponse()
            return Answered(answer.status, answer.read())
        except (OSError, HTTPException) as error:
            self.close()
            raise LineBroken(str(error)) from error

    def close(self) -> None:
        """Close the connection; the next call makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def cut(self) -> None:
        """Let a call in another thread end now, without an answer."""
        connection = self._connection
        if connection is not None and isinstance(connection.sock, socket.socket):
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
