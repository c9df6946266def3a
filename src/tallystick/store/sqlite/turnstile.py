"""A fair lock between processes: two advisory locks in a row.

SQLite's own lock is taken by whoever polls at the right moment, so a busy process starves the others; a
starved heartbeat is an expired lease. Here a writer first passes the gate, then waits for the floor with
the gate still in its hand, and opens the gate only when it has the floor. So at most one process waits at
the floor, the others wait at the gate, and the one that just left the floor has to queue at the gate like
everybody else.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from tallystick.errors import StoreReadOnly


class Turnstile:
    """The right to write to one file: one holder at a time, in turn. Its locks are on files of their own."""

    def __init__(self, database: Path) -> None:
        """Open both lock files beside the database; they stay, empty but for the holder's pid."""
        self._gate = _open(database.with_name(f"{database.name}-gate"))
        try:
            self._floor = _open(database.with_name(f"{database.name}-floor"))
        except StoreReadOnly:
            os.close(self._gate)
            raise

    def __enter__(self) -> None:
        """Wait for our turn."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._floor, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        os.pwrite(self._floor, b"%-20d\n" % os.getpid(), 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the floor to the next."""
        fcntl.flock(self._floor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files, which also gives up what is held."""
        os.close(self._gate)
        os.close(self._floor)


def holder(database: Path) -> int | None:
    """Return the pid of the process that writes at this moment, or None; a stopped one blocks all others."""
    floor = database.with_name(f"{database.name}-floor")
    if not floor.exists():
        return None
    with floor.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(file.read(20) or 0)
        return None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreReadOnly(
            f"the lock file {path} cannot be opened: {error.strerror}", path=str(path)
        ) from error
