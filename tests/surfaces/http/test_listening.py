"""Where the API listens, and under which name it sends people to its dashboard."""

from __future__ import annotations

import asyncio
import re
import socket

import httpx
import pytest

from tallystick.errors import BadInput
from tallystick.http.serving import listening
from tests.patience import wait_until
from tests.surfaces.http.processes import Process, free_port


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


NAME = "tally.example.com"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listens", "options", "link", "is_secure"),
    [
        ("0.0.0.0", ["--host", NAME], f"https://{NAME}", True),
        ("0.0.0.0", ["--host", NAME, "--no-tls-in-front"], f"http://{NAME}:PORT", False),
        ("127.0.0.1", ["--host", NAME], f"https://{NAME}", True),
        ("127.0.0.1", ["--host", NAME, "--no-tls-in-front"], "http://127.0.0.1:PORT", False),
        ("127.0.0.1", [], "http://127.0.0.1:PORT", False),
        ("127.0.0.1", ["--tls-in-front"], "http://127.0.0.1:PORT", True),
    ],
)
def test_the_printed_link_logs_in_where_browsers_reach_the_server(
    tmp_path, listens, options, link, is_secure
):
    (tmp_path / "shop.py").write_text('from tallystick import Tally\napp = Tally("sqlite:///books.db")\n')
    port = free_port()
    bind = f"{listens}:{port}"
    with Process(tmp_path, "-m", "tallystick", "serve", "shop", "--bind", bind, *options) as server:
        wait_until(lambda: server.code is not None or "/ui/login/" in server.said, "a link")
        found = re.search(r"(https?://[^/\s]+)(/ui/login/\w+)", server.said)
        assert found, server.said
        assert found[1] == link.replace("PORT", str(port))
        host = found[1].partition("://")[2]
        answer = httpx.get(
            f"http://127.0.0.1:{port}{found[2]}", headers={"Host": host}, trust_env=False, timeout=60
        )
        assert answer.status_code == 303, answer.text
        assert ("secure" in answer.headers["set-cookie"].lower()) == is_secure
        # What needs no key on this machine needs one where a proxy lets others in.
        for path in ("/openapi.json", "/metrics"):
            seen = httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host}, trust_env=False)
            assert seen.status_code == (401 if options else 200), path
