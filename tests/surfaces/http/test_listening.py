"""Where the API listens."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tallystick.errors import BadInput
from tallystick.http.serving import listening


async def no_delay(listener: socket.socket) -> bool:
    """Connect, and tell whether the connection sends what is written at once."""
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def accepted(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted_socket = writer.get_extra_info("socket")
        found.set_result(accepted_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(accepted, sock=listener):
        _reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        try:
            return bool(await found)
        finally:
            writer.close()


def test_no_body_of_an_answer_waits_until_its_head_is_acknowledged():
    assert asyncio.run(no_delay(listening("127.0.0.1", 0)))


def test_an_address_that_is_taken_is_refused_in_a_sentence():
    with listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(BadInput, match=f"nothing can listen at 127.0.0.1:{port}: Address already in use"):
            listening("127.0.0.1", port)
