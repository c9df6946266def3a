"""The folder of a run: what its processes are told, and what each of them has written down.

A note is one line of JSON in an append-only file, written with one system call, so a process that is killed
leaves whole lines behind. Nothing here goes through the library that is tried.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tallystick.clock import SystemClock
from tests.patience import let_time_pass

SLOTS = 8
LEASE_SECONDS = 2.0
_SLOT = struct.Struct("<q")


class Place:
    """One folder, known to every process of the run by its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, int] = {}
        self._lock = threading.Lock()

    def prepare(self, seed: str, urls: list[str], *, relaxed: bool) -> None:
        """Write down what the processes are told: the seed, the address of each, whether much may be lost."""
        (self.folder / "clock").write_bytes(bytes(SLOTS * _SLOT.size))
        settings = {"seed": seed, "urls": urls, "relaxed": relaxed}
        (self.folder / "settings.json").write_text(json.dumps(settings), "utf-8")

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was written down by `prepare`."""
        return json.loads((self.folder / "settings.json").read_text("utf-8"))

    def note(self, name: str, **facts: object) -> None:
        """Append a line to a file; a full disk is waited for, because the note is not what is tried."""
        line = json.dumps({**facts, "at": round(SystemClock().monotonic(), 3)}).encode() + b"\n"
        with self._lock:
            if name not in self._files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._files[name] = os.open(self.folder / name, flags, 0o600)
            while line:
                try:
                    line = line[os.write(self._files[name], line) :]
                except OSError:
                    let_time_pass(0.05)

    def notes(self, pattern: str) -> Iterator[dict[str, Any]]:
        """Return the lines of the files that match, file by file; a last line without an end is left out."""
        for path in sorted(self.folder.glob(pattern)):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def mark(self, name: str) -> None:
        """Let every process know something."""
        (self.folder / f"mark-{name}").touch()

    def marked(self, name: str) -> bool:
        """Tell whether somebody has said so."""
        return (self.folder / f"mark-{name}").exists()

    def set_clock(self, slot: int, wrong_by_ms: int) -> None:
        """Set the wall clock of one process wrong by so much."""
        with (self.folder / "clock").open("r+b") as file:
            file.seek(slot * _SLOT.size)
            file.write(_SLOT.pack(wrong_by_ms))


class OwnClock(SystemClock):
    """The clocks of this machine, with a wall clock that a nemesis may set wrong while the process runs."""

    def __init__(self) -> None:
        self._skew: mmap.mmap | None = None
        self._offset = 0

    def watch(self, place: Place, slot: int) -> None:
        """Be wrong by what the folder says for this process."""
        with (place.folder / "clock").open("rb") as file:
            self._skew = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._offset = slot * _SLOT.size

    def wall_ms(self) -> int:
        """Return the wall clock as this process sees it."""
        skew = _SLOT.unpack_from(self._skew, self._offset)[0] if self._skew is not None else 0
        return super().wall_ms() + skew
