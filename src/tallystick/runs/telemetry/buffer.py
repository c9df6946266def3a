"""A bounded file for telemetry that could not be sent yet; any process that reaches the service empties it.

Runs of several processes may share one buffer, so every use holds its lock for a moment. When it is full,
the newest tellings are dropped and counted: the log of the run still has them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from tallystick.log.event import NOT_DECODABLE
from tallystick.log.folder import Folder, release, write_all
from tallystick.runs.telemetry.records import Telling

NAME: Final = ".telemetry.ndjson"
LOCK: Final = ".telemetry.lock"
BYTES_MAX: Final = 8 * 1024 * 1024

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Telling).decode


class Buffer:
    """Tellings that wait in a folder."""

    def __init__(self, root: str | os.PathLike[str], bytes_max: int = BYTES_MAX) -> None:
        """Use the folder of the runs; the file is made when it is needed."""
        self._root = root
        self._bytes_max = bytes_max
        self.dropped = 0

    def keep(self, tellings: Sequence[Telling]) -> bool:
        """Add tellings at the end; return False when there is no room or another process has the lock."""
        data = b"".join(_encode(telling) + b"\n" for telling in tellings)
        with Folder.open(self._root, create=True) as folder, folder.locked(LOCK) as held:
            kept = held and self._append(folder, data)
        if not kept:
            self.dropped += len(tellings)
        return kept

    def empty(self, send: Callable[[Sequence[Telling]], None]) -> int:
        """Send everything that waits and forget it; return how many there were.

        If `send` raises, everything stays; what was sent twice is the same record, which a service takes
        once.
        """
        with Folder.open(self._root, create=True) as folder:
            if not folder.exists(NAME):
                return 0
            with folder.locked(LOCK) as held:
                if not held:
                    return 0
                waiting = _parsed(folder.read(NAME))
                if waiting:
                    send(waiting)
                folder.discard(NAME)
        return len(waiting)

    def _append(self, folder: Folder, data: bytes) -> bool:
        """Write at the end of the file if there is room."""
        descriptor = folder.open_file(NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            if folder.files.size(descriptor) + len(data) > self._bytes_max:
                return False
            write_all(folder.files, descriptor, data)
        finally:
            release(folder.files, descriptor)
        return True

    def size_bytes(self) -> int:
        """Return how much waits."""
        with Folder.open(self._root, create=True) as folder:
            return len(folder.read(NAME)) if folder.exists(NAME) else 0


def _parsed(data: bytes) -> list[Telling]:
    """Return the tellings of a file; a line that a crash tore is left out."""
    found: list[Telling] = []
    for line in data.splitlines():
        try:
            found.append(_decode(line))
        except NOT_DECODABLE:
            continue
    return found
