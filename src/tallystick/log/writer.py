"""Append events to a log: when `append` returns they are on the disk, when it raises they are not in the log.

A failed write or sync is never repeated on the same descriptor: after an error of the device the page cache
may call clean what the disk has lost. The file is opened again, cut back to its last acknowledged byte and
compared.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tallystick import crash
from tallystick.clock import Clock
from tallystick.errors import LogCorrupt, StorageFailed
from tallystick.ids import Ids
from tallystick.log.event import Draft, utc_text
from tallystick.log.folder import Folder, release, write_all
from tallystick.log.lines import LineMaker, payload_texts
from tallystick.log.reader import Tail

BEFORE: Final = crash.declare("log.append.before", "the event exists only in memory")
PART: Final = crash.declare("log.append.part", "the first pieces of a long batch are written, not synced")
WRITTEN: Final = crash.declare("log.append.written", "the event is written, not synced")
SYNCED: Final = crash.declare("log.append.synced", "the event is on the disk, its caller does not know yet")


class Appended(NamedTuple):
    """What the log added to the drafts: one time for all, and an id for each."""

    ts: str
    event_ids: tuple[str, ...]


class LogWriter:
    """The one writer of a log; the caller holds the lock of its folder."""

    def __init__(
        self, folder: Folder, name: str, tail: Tail, *, run_id: str, trace_id: str, clock: Clock, ids: Ids
    ) -> None:
        """Go on after `tail`, which a reader has proven; the file is made if it is not there."""
        self._folder = folder
        self._name = name
        self._clock = clock
        self._ids = ids
        self._maker = LineMaker(run_id, trace_id)
        self._last_hash = tail.last_hash
        self._last_id = tail.last_id
        self._length = tail.length
        self._last_line = b""
        self._broken = ""
        self._descriptor = folder.open_file(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        folder.sync()
        if folder.files.size(self._descriptor) != tail.length:
            self.close()
            raise LogCorrupt(f"{folder.name}/{name}", tail.lines, "the log has grown since it was read")

    def close(self) -> None:
        """Give the descriptor back; a closed writer stays closed."""
        self._broken = self._broken or "the log is closed"
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            release(self._folder.files, descriptor)

    def append(self, drafts: Sequence[Draft]) -> Appended:
        """Add events to the log, all with one sync, and return what the log added to them."""
        if self._broken:
            raise StorageFailed(
                f"{self._name} cannot be written: {self._broken}; resume the run", call="append"
            )
        ts = utc_text(self._clock.wall_ms())
        if not drafts:
            return Appended(ts, ())
        payloads = payload_texts(drafts)
        event_ids = self._ids.many(len(drafts), after=self._last_id)
        self._write(self._maker.pieces(drafts, payloads, event_ids, ts, self._last_hash))
        self._last_hash = self._maker.last_hash
        self._last_id = event_ids[-1]
        return Appended(ts, tuple(event_ids))

    def _write(self, pieces: Iterator[bytes]) -> None:
        """Put all pieces behind the acknowledged end and sync once, or leave that end where it is."""
        files, length, data = self._folder.files, self._length, b""
        crash.point(BEFORE)
        # Whatever ends this early, an interrupt from the keyboard too: nothing may be glued to half a batch.
        self._broken = "an append was interrupted"
        try:
            for data in pieces:
                if length > self._length:
                    crash.point(PART)
                write_all(files, self._descriptor, data)
                length += len(data)
            crash.point(WRITTEN)
            files.sync_data(self._descriptor)
        except OSError as error:
            self._cut_back(error)
            raise StorageFailed.of("append", f"{self._folder.name}/{self._name}", error) from error
        crash.point(SYNCED)
        self._length = length
        self._last_line = data[data.rfind(b"\n", 0, -1) + 1 :]
        self._broken = ""

    def _cut_back(self, cause: OSError) -> None:
        """Take back what may have reached the file, through a fresh descriptor, or refuse to go on."""
        files, descriptor = self._folder.files, self._descriptor
        self._descriptor = -1
        self._broken = str(cause)
        try:
            release(files, descriptor)
            self._descriptor = self._folder.open_file(self._name, os.O_RDWR | os.O_APPEND)
            files.truncate(self._descriptor, self._length)
            files.fsync(self._descriptor)
            end = files.read(self._descriptor, len(self._last_line) + 1, self._length - len(self._last_line))
        except (OSError, StorageFailed) as error:
            # The next resume finds a torn tail and repairs it; until then nothing may be glued to it.
            self._broken = f"{cause}, and cutting it back failed: {error}"
            return
        if end == self._last_line:
            self._broken = ""


def repair(folder: Folder, name: str, tail: Tail) -> str:
    """Cut a torn end off a log, keeping its bytes in a file of their own, and return that file's name.

    A last event that lacks only its line feed is whole: it gets the line feed and nothing is cut.
    """
    if not tail.torn and not tail.needs_newline:
        return ""
    kept_as = ""
    if tail.torn:
        kept_as = f"{name}.torn-{hashlib.sha256(tail.torn).hexdigest()[:16]}"
        folder.write_new(kept_as, tail.torn)
        folder.sync()
    descriptor = folder.open_file(name, os.O_RDWR | os.O_APPEND)
    try:
        if tail.torn:
            folder.files.truncate(descriptor, tail.length)
        else:
            write_all(folder.files, descriptor, b"\n")
        folder.files.fsync(descriptor)
    except OSError as error:
        raise StorageFailed.of("repair", f"{folder.name}/{name}", error) from error
    finally:
        release(folder.files, descriptor)
    tail.torn, tail.needs_newline = b"", False
    return kept_as
