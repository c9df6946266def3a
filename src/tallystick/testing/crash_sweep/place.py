"""A folder of one trial: the database, and what must be known without it.

Nothing here goes through the engine. An acknowledgement is on disk before anybody acts on it, so the oracle
can tell what was promised.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, NamedTuple


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

    def __init__(self, folder: Path) -> None:
        """Name the files; nothing is created."""
        self.folder: Final = folder
        self.database: Final = folder / "tally.db"
        self.log: Final = folder / "log"
        self._acks: Final = folder / "acknowledged"
        self._sent: Final = folder / "sent"
        self._calls: Final = folder / "calls"

    @property
    def url(self) -> str:
        """Return the address of the database."""
        return f"sqlite:///{self.database}"

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


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []
