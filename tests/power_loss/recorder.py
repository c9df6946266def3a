"""Everything that the real SQLite library does to its files, in order, and between it what users were told.

A `kill -9` cannot show a missing sync, because the page cache survives it. So a VFS notes each write,
truncation, sync and removal of the database, its journal and its log, and the power is cut afterwards, on
paper, wherever one likes. The shared memory of the log is not on the disk and is not noted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

_BELOW = "unix"


class Write(NamedTuple):
    """Bytes were handed to the system."""

    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file was cut, or made longer."""

    file: str
    size: int


class Sync(NamedTuple):
    """A sync has returned; it covers what was noted before its place `since`."""

    file: str
    since: int


class Remove(NamedTuple):
    """A file was removed, and perhaps its folder synced."""

    file: str
    synced: bool


class Ack(NamedTuple):
    """A user was told something, which from now on must be so."""

    what: str
    label: str
    value: str = ""


Note = Write | Truncate | Sync | Remove | Ack


class Recorder:
    """The notes of one recording; threads may add to them."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._lock = threading.Lock()

    def add(self, note: Note) -> None:
        """Append a note."""
        with self._lock:
            self.notes.append(note)


class _File(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: apsw.URIFilename | str, flags: list[int]) -> None:
        path = name if isinstance(name, str) else name.filename()
        self._recorder = recorder
        self._name = Path(path).name
        super().__init__(_BELOW, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 (SQLite's name)
        super().xWrite(data, offset)
        self._recorder.add(Write(self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802 (SQLite's name)
        super().xTruncate(size)
        self._recorder.add(Truncate(self._name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802 (SQLite's name)
        since = len(self._recorder.notes)
        super().xSync(flags)
        self._recorder.add(Sync(self._name, since))


class _Vfs(apsw.VFS):
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        super().__init__("tallystick-recorder", _BELOW, makedefault=True)

    def xOpen(  # noqa: N802 (SQLite's name)
        self, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile(_BELOW, name, flags)  # a temporary file, which nobody looks for afterwards
        return _File(self._recorder, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 (SQLite's name)
        super().xDelete(filename, syncdir)
        self._recorder.add(Remove(Path(filename).name, syncdir))


@contextmanager
def recording() -> Iterator[Recorder]:
    """Note what connections that are opened in this block do; close them before it ends."""
    recorder = Recorder()
    vfs = _Vfs(recorder)
    try:
        yield recorder
    finally:
        vfs.unregister()
