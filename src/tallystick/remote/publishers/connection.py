"""One connection to a service over HTTP/1.1: it is kept while both sides want to, and follows nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import h11

ANSWER_BYTES_MAX: Final = 64 * 1024
KEPT_SECONDS: Final = 30.0
_READ_BYTES: Final = 64 * 1024


class HttpError(Exception):
    """The other side does not speak HTTP as we do, or says too much."""


class Connection:
    """One connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin with nothing said."""
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)
        self._loop = asyncio.get_running_loop()
        self._used_at = self._loop.time()

    @property
    def is_idle(self) -> bool:
        """Tell whether a request is over, and another one may follow it."""
        return self._http.our_state is h11.IDLE

    @property
    def is_good(self) -> bool:
        """Tell whether it is likely that the other side still listens."""
        is_fresh = self._loop.time() - self._used_at < KEPT_SECONDS
        return is_fresh and not self._reader.at_eof() and not self._writer.is_closing()

    async def post(self, target: str, headers: Mapping[str, str], body: bytes) -> int:
        """Post a body and return the status of the answer, whose content is read and dropped."""
        http, listed = self._http, list(headers.items())
        parts = (
            h11.Request(method="POST", target=target, headers=listed),
            h11.Data(body),
            h11.EndOfMessage(),
        )
        try:
            self._writer.write(b"".join(http.send(part) or b"" for part in parts))
            await self._writer.drain()
            status = await self._status()
            if http.their_state is h11.DONE and http.our_state is h11.DONE:
                http.start_next_cycle()
                self._used_at = self._loop.time()
        except h11.ProtocolError as error:
            raise HttpError(str(error)) from error
        return status

    async def _status(self) -> int:
        status = length = 0
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                length += len(event.data)
                if length > ANSWER_BYTES_MAX:
                    raise HttpError(f"the service answered with more than {ANSWER_BYTES_MAX} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return status
            elif not isinstance(event, h11.InformationalResponse):
                raise HttpError("the service closed the connection before its answer was whole")

    def close(self) -> None:
        """Hang up, without waiting for the other side."""
        self._writer.transport.abort()


async def open_connection(
    address: str, port: int, name: str, certificates: ssl.SSLContext | None
) -> Connection:
    """Connect to an address; with certificates over TLS, to the server of that name."""
    server_name = None if certificates is None else name
    reader, writer = await asyncio.open_connection(
        address, port, ssl=certificates, server_hostname=server_name
    )
    return Connection(reader, writer)
