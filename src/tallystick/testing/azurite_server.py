"""A real emulator of Azure Tables for tests: azurite in memory, on loopback, gone when the tests are.

`TALLYSTICK_AZURITE` names the folder that has it in `node_modules`; `scripts/azurite` makes `.tools/azurite`.
A guardian process starts it, waits for the end of the test run and ends it then, however the run ended.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from tallystick.clock import SystemClock
from tallystick.ids import SystemIds
from tallystick.testing.postgres_server import free_port

SECONDS_MAX = 60
ACCOUNT = "tallytest"
_guardians: list[subprocess.Popen[bytes]] = []


class NoAzurite(Exception):
    """Azurite cannot be had here."""


@dataclass(frozen=True, slots=True)
class Azurite:
    """Where a running emulator is, and the key of its one account."""

    port: int
    key: str
    pid: int = 0

    def connection(self, port: int | None = None) -> str:
        """Return the connection string of the account; `port` is that of who stands in between."""
        endpoint = f"http://127.0.0.1:{port or self.port}/{ACCOUNT}"
        return f"AccountName={ACCOUNT};AccountKey={self.key};TableEndpoint={endpoint};"

    def url(self, prefix: str) -> str:
        """Return an address that Tallystick opens, once the connection string is in the environment."""
        return f"azure://{ACCOUNT}/{prefix}"


def find_azurite() -> Path:
    """Return the program, or say loudly that there is none."""
    folder = Path(os.environ.get("TALLYSTICK_AZURITE", ".tools/azurite")).absolute()
    program = folder / "node_modules" / "azurite" / "dist" / "src" / "table" / "main.js"
    if shutil.which("node") is None or not program.exists():
        raise NoAzurite(
            "these tests need node and azurite: say scripts/azurite, or name its folder in TALLYSTICK_AZURITE"
        )
    return program


def start_azurite() -> Azurite:
    """Start an emulator with nothing in it, and wait until it answers."""
    program, port = find_azurite(), free_port()
    clock, key = SystemClock(), base64.b64encode(SystemIds().token().encode()).decode()
    run = int(
        os.environ.get(
            "TALLYSTICK_TEST_RUN", os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        )
    )
    guardian = subprocess.Popen(  # noqa: S603 (this very module, by this very interpreter)
        [sys.executable, "-m", "tallystick.testing.azurite_server", str(run), str(program), str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"},
    )
    _guardians.append(guardian)  # it outlives us, on purpose
    until, pause = clock.monotonic() + SECONDS_MAX, threading.Event()
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if guardian.poll() is not None or clock.monotonic() > until:
                raise NoAzurite(f"{program} does not answer") from None
            pause.wait(0.05)
        else:
            return Azurite(port, key, guardian.pid)


def shared_azurite(folder: Path) -> Azurite:
    """Return the one emulator of this test run, starting it if this is the first process to ask."""
    note = folder / "azurite.json"
    with (folder / "azurite.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if note.exists():
            return Azurite(**json.loads(note.read_text("utf-8")))
        azurite = start_azurite()
        note.write_text(json.dumps(asdict(azurite)), "utf-8")
        return azurite


def main() -> None:
    """Run the emulator until a process ends."""
    run, program, port = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory(prefix="tallystick-azurite-") as folder:
        words = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        words += ["--tableHost", "127.0.0.1", "--tablePort", port]
        emulator = subprocess.Popen(["node", program, *words], cwd=folder)  # noqa: S603, S607 (found before)
        signal.signal(signal.SIGTERM, lambda *_: emulator.kill())
        with contextlib.suppress(ProcessLookupError):
            watched = [os.pidfd_open(run), os.pidfd_open(emulator.pid)]
            select.select(watched, [], [])
        emulator.kill()
        emulator.wait()


if __name__ == "__main__":
    main()
