"""The three files of an open database: itself, its log, and the index of the log.

SQLite opens each of them once and never looks again. Deleting the log under a running process lets it
write into a file without a name, and every process that comes later begins another log: what the ones say is
durable the others never see, and each moves its own log into the one database. So a process compares the
files at its path with those it has opened, before it writes. While it has them open, SQLite itself replaces
and removes none of them: only the last connection does that, when it closes.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from tallystick.errors import StoreGone


class Files:
    """The files that a process has opened."""

    def __init__(self, path: Path) -> None:
        """Remember the files at this path; they are open by now."""
        self._path = path
        self._names = (str(path), f"{path}-wal", f"{path}-shm")
        self._own = _identity(self._names)

    def are_ours(self) -> bool:
        """Tell whether the files at our path are still those that we have opened."""
        return _identity(self._names) == self._own

    def check(self) -> None:
        """Refuse to go on when they are not: everything after would be lost."""
        if not self.are_ours():
            raise self._gone()

    def check_log(self, writer: apsw.Connection) -> None:
        """Refuse to write, and save what is in a log that has lost its name; the turn to write is held.

        With the last process that has it open, that log would be gone. It is moved into the database only
        where no other log has begun.
        """
        if self.are_ours():
            return
        if self._is_nameless() and _moved(writer):
            raise StoreGone(
                f"{self._path}-wal was deleted while it was open; what was acknowledged is saved in "
                f"{self._path.name}; start this program again",
                path=str(self._path),
            )
        raise self._gone()

    def let_go(self, *connections: apsw.Connection) -> None:
        """Keep connections that are about to close from removing a log that is not theirs."""
        if self._own is not None and _inode(self._names[1]) not in (None, self._own[2]):
            for connection in connections:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _is_nameless(self) -> bool:
        """Tell whether our log has lost its name and no other was begun, beside a database that is ours."""
        main, log, index = map(_inode, self._names)
        return (
            self._own is not None and main == self._own[1] and log is None and index in (None, self._own[3])
        )

    def _gone(self) -> StoreGone:
        main, _log, _index = map(_inode, self._names)
        if self._own is None or main != self._own[1]:
            what, remedy = f"{self._path} was moved, deleted or replaced", "put it back or start again"
        else:
            what = f"{self._path}-wal or -shm was deleted or replaced"
            remedy = "stop every program that uses the file, start again, and look whether jobs are missing"
        return StoreGone(f"{what} while it was open; {remedy}", path=str(self._path))


def _identity(names: tuple[str, str, str]) -> tuple[int, int, int, int] | None:
    try:
        main, log, index = map(os.stat, names)
    except OSError:
        return None
    return main.st_dev, main.st_ino, log.st_ino, index.st_ino


def _moved(writer: apsw.Connection) -> bool:
    """Move the log into the database and tell whether all of it is there."""
    try:
        (row,) = writer.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    except apsw.Error:
        return False
    _busy, frames, moved = row
    return bool(frames == moved)


def _inode(name: str) -> int | None:
    try:
        return Path(name).stat().st_ino
    except OSError:
        return None
