"""A folder of one trial: the database, and what must be known without it.

Nothing here goes through the engine. An acknowledgement is on disk before anybody acts on it, so the oracle
can tell what was promised.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Final, NamedTuple

from tests.crash.sweep import facts


class Acknowledged(NamedTuple):
    """A submission whose caller was told that it is durable."""

    label: str
    job_id: str


class Sent(NamedTuple):
    """A signal or a cancellation whose sender was told that it is durable, and what became of it."""

    job_id: str
    id: str
    outcome: str


class Place:
    """Where one trial happens."""

    def __init__(self, folder: Path, server: str = "") -> None:
        """Name the files; nothing is created. With a PostgreSQL server the books are in a schema there."""
        self.folder: Final = folder
        self.server: Final = server
        self.store: Final = "postgres" if server else "sqlite"
        self.schema: Final = f"trial_{folder.name}"
        self.lease_ms: Final = facts.LEASE_MS[self.store]
        self.look_seconds: Final = facts.LOOK_SECONDS[self.store]
        self.database: Final = folder / "tally.db"
        self.log: Final = folder / "log"
        self._acks: Final = folder / "acknowledged"
        self._sent: Final = folder / "sent"
        self._calls: Final = folder / "calls"

    @property
    def url(self) -> str:
        """Return the address of the database for this process, which the server then knows by its name."""
        if not self.server:
            return f"sqlite:///{self.database}"
        own = f"-c%20search_path%3D{self.schema}"
        return f"{self.server}?schema={self.schema}&options={own}&application_name={self._name(os.getpid())}"

    def is_quiet(self, pid: int) -> bool:
        """Tell whether a process that is stopped now has stopped outside of transactions."""
        if self.server:
            from tests.crash.sweep import postgres_books

            return postgres_books.is_quiet(self, self._name(pid))
        locks = (self.database.with_name(f"{self.database.name}-{part}") for part in ("gate", "floor"))
        return all(_is_free(lock) for lock in locks)

    def _name(self, pid: int) -> str:
        return f"{self.schema}-{pid}"

    def acknowledge(self, label: str, job_id: str) -> None:
        """Note that a submit returned; durable before this returns."""
        _append(self._acks, json.dumps([label, job_id]), sync=True)

    def acknowledged(self) -> list[Acknowledged]:
        """Return every submission that was acknowledged."""
        return [Acknowledged(*json.loads(line)) for line in _lines(self._acks)]

    def note_sent(self, sent: Sent) -> None:
        """Note that a sending returned; durable before this returns."""
        _append(self._sent, json.dumps(sent), sync=True)

    def sent(self) -> list[Sent]:
        """Return every sending that was acknowledged."""
        return [Sent(*json.loads(line)) for line in _lines(self._sent)]

    def called(self, label: str, step: str, token: str) -> None:
        """Note that the body of a step ran and what it is about to return."""
        _append(self._calls, json.dumps([label, step, token]), sync=False)

    def calls(self) -> set[tuple[str, str, str]]:
        """Return (label, step, token) of every body that ran."""
        return {tuple(json.loads(line)) for line in _lines(self._calls)}

    def first_time(self, mark: str) -> bool:
        """Return True once for each mark, whatever crashes in between."""
        try:
            os.close(os.open(self.folder / f"mark-{mark}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def marked(self, mark: str) -> bool:
        """Tell whether anybody has made this mark."""
        return (self.folder / f"mark-{mark}").exists()


def _append(path: Path, line: str, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []
