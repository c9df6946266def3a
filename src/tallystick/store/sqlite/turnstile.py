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
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tallystick.errors import StoreReadOnly


class Turnstile:
    """The right to write to one file: one holder at a time, in turn. Its locks are on files of their own."""

    def __init__(self, database: Path) -> None:
        """Open both lock files beside the database; they stay, empty but for the holder's pid."""
        self._signature = b"%-20d\n" % os.getpid()
        self._gate = _open(database.with_name(f"{database.name}-gate"))
        try:
            self._floor = _open(database.with_name(f"{database.name}-floor"))
        except BaseException:
            os.close(self._gate)
            raise

    def __enter__(self) -> None:
        """Wait for our turn; if that is cut short, nothing stays held."""
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            fcntl.flock(self._floor, fcntl.LOCK_EX)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            self._sign()
        except BaseException:
            # Who is interrupted cannot know what it held already. To give up what was not held does nothing.
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            fcntl.flock(self._floor, fcntl.LOCK_UN)
            raise

    def _sign(self) -> None:
        """Write down who holds the floor, for people who look: that this cannot be done stops nobody."""
        try:
            os.pwrite(self._floor, self._signature, 0)
        except OSError:
            # No name is better than that of the last holder, who would be blamed.
            with suppress(OSError):
                os.ftruncate(self._floor, 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the floor to the next."""
        fcntl.flock(self._floor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files, which also gives up what is held."""
        try:
            os.close(self._floor)
        finally:
            os.close(self._gate)


class Holder(NamedTuple):
    """Who writes at this moment: its pid, 0 if it could not write that down, and since when."""

    pid: int
    since_ms: int


def holder(database: Path) -> Holder | None:
    """Return which process writes at this moment, if any; one that does not go on blocks all others."""
    floor = database.with_name(f"{database.name}-floor")
    try:
        file = floor.open("rb")
    except FileNotFoundError:
        return None
    with file:
        try:
            # A shared lock: two who look must not take each other for a writer.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # The holder writes its pid when it comes, so that is when the file was changed last.
            return Holder(int(file.read(20) or 0), os.fstat(file.fileno()).st_mtime_ns // 1_000_000)
        return None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreReadOnly(
            f"the lock file {path} cannot be opened: {error.strerror}", path=str(path)
        ) from error
