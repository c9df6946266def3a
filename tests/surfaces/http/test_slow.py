"""Connections that are slow, cut or greedy: they end, and others are answered meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tallystick.http import calls, serving
from tests.surfaces.http.served import COMMAND, make_app, sqlite_url

HEAD = "POST /v1/commands HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int, str]]:
    """Serve in a thread, with little patience."""
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(calls, "BODY_SECONDS", 0.3)
    app = make_app(sqlite_url(tmp_path))
    ready, told, servers = threading.Event(), [], []

    def announce(served: serving.Served) -> None:
        told.append(served)
        ready.set()

    class Kept(serving._HttpServer):
        def __init__(self, *about: object) -> None:
            super().__init__(*about)  # type: ignore[arg-type]  # as it is
            servers.append(self)

    monkeypatch.setattr(serving, "_HttpServer", Kept)
    options = {"bind": "127.0.0.1:0", "hosts": (), "in_flight_max": 100, "announce": announce}
    thread = threading.Thread(target=serving.serve, args=(app,), kwargs=options)
    thread.start()
    assert ready.wait(60)
    host, port = told[0].url.removeprefix("http://").split(":")
    yield host, int(port), told[0].key
    servers[0].handle_exit(15, None)
    thread.join(60)
    assert not thread.is_alive()
    app.close()


def answers(address: tuple[str, int, str]) -> bool:
    host, port, key = address
    answer = httpx.get(
        f"http://{host}:{port}/v1/jobs", headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    return answer.status_code == 200


def received(line: socket.socket) -> bytes:
    """Return all that comes until the other side closes the connection."""
    parts = []
    while part := line.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.slow
def test_a_head_that_never_ends_is_given_up(address: tuple[str, int, str]):
    lines = [socket.create_connection(address[:2], timeout=30) for _ in range(20)]
    for line in lines:
        line.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: 127")
    assert answers(address)
    assert {received(line) for line in lines} == {b""}
    for line in lines:
        line.close()


@pytest.mark.slow
def test_who_connects_and_says_nothing_is_let_go(address: tuple[str, int, str]):
    with socket.create_connection(address[:2], timeout=30) as line:
        assert received(line) == b""


@pytest.mark.slow
def test_a_body_that_never_comes_is_given_up(address: tuple[str, int, str]):
    head = f"{HEAD}Authorization: Bearer {address[2]}\r\nContent-Length: 100\r\n\r\n{{"
    with socket.create_connection(address[:2], timeout=30) as line:
        line.sendall(head.encode())
        assert answers(address)
        assert b" 408 " in line.recv(65536)


@pytest.mark.slow
def test_a_huge_head_is_refused(address: tuple[str, int, str]):
    with socket.create_connection(address[:2], timeout=30) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 40_000)
        assert b" 400 " in line.recv(65536)


@pytest.mark.slow
def test_a_body_without_an_end_is_refused_when_it_is_too_large(address: tuple[str, int, str]):
    head = f"{HEAD}Authorization: Bearer {address[2]}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(address[:2], timeout=30) as line:
        line.sendall(head.encode())
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(40):
                line.sendall(piece)
        except OSError:
            return  # it hung up while we were still talking
        assert b" 413 " in line.recv(65536)


@pytest.mark.slow
def test_a_connection_cut_before_the_answer_makes_one_job(address: tuple[str, int, str]):
    """The answer is lost, the request is sent again: it is the same job."""
    import json

    host, port, key = address
    body = json.dumps({**COMMAND, "tenant_id": "default"}).encode()
    head = f"{HEAD}Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(5):
        with socket.create_connection((host, port), timeout=30) as line:
            line.sendall(head.encode() + body)
    answer = httpx.post(
        f"http://{host}:{port}/v1/commands",
        content=body,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        trust_env=False,
    )
    assert answer.status_code in (200, 202)
    listed = httpx.get(
        f"http://{host}:{port}/v1/jobs", headers={"Authorization": f"Bearer {key}"}, trust_env=False
    ).json()
    assert [job["jobId"] for job in listed["jobs"]] == [answer.json()["jobId"]]
