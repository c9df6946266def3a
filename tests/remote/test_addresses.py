"""A webhook connects to public addresses and to networks that the operator has named: to nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from ipaddress import ip_address

import pytest

from tallystick.errors import BadInput, PublishFailed
from tallystick.remote.publishers.addresses import is_public
from tallystick.remote.publishers.endpoint import Outgoing
from tallystick.remote.publishers.webhook import Webhook
from tests.remote.receiver import receiving

SECRET = "a secret that nobody guesses"
OUT = Outgoing("j1:ocr:1", "ocr-p1", b"{}")

FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "fc00::1", "fd00::1", "fe80::1",
    "fe80::1%lo", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1",
    "2001:db8::1", "100::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001:80b::200e"]

SPELLINGS = [
    "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://127.1/",
    "https://127.0.1/", "https://0/", "https://017700000001/", "https://127.0.0.1./", "https://127.0.0.0x1/",
    "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[0:0:0:0:0:0:0:1]/",
    "https://[::127.0.0.1]/", "https://127.0.0.1/", "https://0.0.0.0/", "https://169.254.169.254/latest/",
    "https://user@example.com/", "https://user:pass@example.com/", "https://example.com@127.0.0.1/",
    "https://127.0.0.1#@example.com/", "https://example.com\\@127.0.0.1/", "http://example.com/",
    "file:///etc/passwd", "gopher://example.com/", "ftp://example.com/", "//example.com/", "example.com",
    "https://", "https:///path", "https://exa mple.com/", "https://example.com/\r\nx: y", "https://[::1",
    "https://example.com:99999/", "https://example.com:x/", "https://%31%32%37.0.0.1/", "https://[fe80::1%25lo]/",
]  # fmt: skip


@pytest.mark.parametrize("text", FORBIDDEN)
def test_an_address_of_the_inner_network_is_not_public(text: str):
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is(text: str):
    assert is_public(ip_address(text))


@pytest.mark.parametrize("url", SPELLINGS)
def test_an_address_that_leads_inside_or_cannot_be_told_is_refused_where_it_is_declared(url: str):
    with pytest.raises(BadInput):
        Webhook(url, secret=SECRET)


@pytest.fixture
def trap() -> Iterator[tuple[int, list[object]]]:
    """Listen on every address of this machine; whatever connects is kept."""
    seen: list[object] = []
    listening = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    listening.settimeout(0.05)
    over = threading.Event()

    def accept() -> None:
        while not over.is_set():
            try:
                connection, address = listening.accept()
            except TimeoutError:
                continue
            seen.append(address)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    yield listening.getsockname()[1], seen
    over.set()
    thread.join()
    listening.close()


def posted(hook: Webhook, answers: Sequence[Sequence[str]]) -> list[str]:
    """Post once for each answer of the resolver; return what each try came to."""
    told = iter(answers)

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return next(told)

    async def run() -> list[str]:
        publisher, came = hook.connect(resolve), []
        for _answer in answers:
            try:
                async with asyncio.timeout(10):
                    await publisher.publish(OUT)
                came.append("out")
            except PublishFailed as failed:
                came.append(failed.message)
        await publisher.close()
        return came

    return asyncio.run(run())


@pytest.mark.parametrize("text", FORBIDDEN)
def test_a_name_that_leads_inside_is_never_connected_to(text: str, trap: tuple[int, list[object]]):
    port, seen = trap
    hook = Webhook(f"https://hooks.example.com:{port}/", secret=SECRET)
    (came,) = posted(hook, [[text]])
    assert "no connection is made" in came
    assert seen == []


def test_one_inner_address_among_public_ones_refuses_all(trap: tuple[int, list[object]]):
    port, seen = trap
    hook = Webhook(f"https://hooks.example.com:{port}/", secret=SECRET)
    (came,) = posted(hook, [["93.184.215.14", "127.0.0.1"]])
    assert "127.0.0.1; no connection is made" in came
    assert seen == []


def test_an_answer_that_changes_changes_nothing(trap: tuple[int, list[object]]):
    """What was judged is what is connected to: there is no second look for an attacker to answer."""
    port, seen = trap
    with receiving() as receiver:
        hook = Webhook(
            f"http://hooks.example.com:{receiver.port}/", secret=SECRET, allow_networks=["127.0.0.2/32"]
        )
        asked = []

        async def resolve(host: str, _port: int) -> Sequence[str]:
            asked.append(host)
            return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

        async def run() -> list[str]:
            publisher, came = hook.connect(resolve), []
            for _try in range(2):
                try:
                    await publisher.publish(OUT)
                    came.append("out")
                except PublishFailed as failed:
                    came.append(failed.message)
            await publisher.close()
            return came

        first, second = asyncio.run(run())
        assert "ConnectionRefusedError" in first  # the receiver listens elsewhere: nothing fell back to it
        assert "127.0.0.1; no connection is made" in second
        assert receiver.connections == 0
    assert len(asked) == 2
    assert (port > 0, seen) == (True, [])


def test_plain_http_is_for_the_named_networks_only():
    hook = Webhook("http://hooks.example.com/", secret=SECRET, allow_networks=["10.0.0.0/8"])
    (came,) = posted(hook, [["8.8.8.8"]])
    assert "no connection is made" in came


def test_a_redirect_is_not_followed(trap: tuple[int, list[object]]):
    port, seen = trap
    with receiving() as receiver:
        receiver.answer = lambda _got: (307, {"location": f"http://127.0.0.1:{port}/"}, b"")
        hook = Webhook(receiver.url, secret=SECRET, allow_networks=["127.0.0.0/8"])
        (came,) = posted(hook, [["127.0.0.1"]])
        assert "answered 307" in came
        assert len(receiver.got) == 1
    assert seen == []


def test_proxies_of_the_environment_are_not_asked(
    trap: tuple[int, list[object]], monkeypatch: pytest.MonkeyPatch
):
    port, seen = trap
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    with receiving() as receiver:
        hook = Webhook(receiver.url, secret=SECRET, allow_networks=["127.0.0.0/8"])
        assert posted(hook, [["127.0.0.1"]]) == ["out"]
    assert seen == []


@pytest.mark.parametrize(
    "networks", ["10.0.0.0/8", ["10.0.0.1/8"], ["nowhere"]], ids=["text", "host bits", "no network"]
)
def test_networks_are_written_as_networks(networks):
    with pytest.raises(BadInput, match="allow_networks"):
        Webhook("https://example.com/", secret=SECRET, allow_networks=networks)
