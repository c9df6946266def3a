"""Read an event log from its first byte, check every line, and say exactly where the first bad one is.

Memory stays flat however long the log is: event ids of one writer increase, so a repeated id shows itself by
not increasing. Only a log whose ids do not increase costs a table of ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from tallystick.errors import LogCorrupt
from tallystick.log.event import LINE_BYTES_MAX, NOT_DECODABLE, LogEvent, event_hash
from tallystick.log.files import FileSystem
from tallystick.log.folder import chunks

_decoder: Final = msgspec.json.Decoder(LogEvent)


@dataclass(slots=True)
class Tail:
    """Where the believable part of a log ends, and what a writer needs to go on from there."""

    length: int = 0
    lines: int = 0
    last_hash: str = ""
    last_id: str = ""
    torn: bytes = b""
    needs_newline: bool = False


class LogReader:
    """One pass over a log; iterate it to the end, then look at `tail`."""

    def __init__(self, files: FileSystem, descriptor: int, path: str) -> None:
        """Read an open file; `path` is for messages."""
        self._files = files
        self._descriptor = descriptor
        self._path = path
        self._seen: dict[str, bytes] | None = None
        self.tail = Tail()

    def __iter__(self) -> Iterator[LogEvent]:
        """Yield every event whose place in the chain is proven; raise LogCorrupt at the first that is not."""
        tail, decode = self.tail, _decoder.decode
        head, last_id, length = "", "", 0
        for line in self._lines():
            tail.lines += 1
            try:
                event = decode(line)
            except NOT_DECODABLE as error:
                if self._is_torn(line):
                    return
                raise self._corrupt(f"not an event: {error}") from error
            event_id, prev_hash, own_hash = event.event_id, event.prev_hash, event.event_hash
            if prev_hash != head or event_id <= last_id:
                if self._is_repeated(event_id, line):
                    tail.length = length = length + len(line) + 1
                    continue
                if prev_hash != head:
                    raise self._corrupt(
                        "the hash chain is broken: prev_hash is not the hash of the event before"
                    )
            if event_hash(event_id, event.ts, event.type, event.payload, prev_hash) != own_hash:
                raise self._corrupt("the content of the event does not match its event_hash")
            head = tail.last_hash = own_hash
            if event_id > last_id:
                last_id = tail.last_id = event_id
            tail.length = length = length + len(line) + 1
            if self._seen is not None:
                self._seen[event_id] = hashlib.sha256(line).digest()
            yield event

    def _lines(self) -> Iterator[bytes]:
        """Yield whole lines, then judge what follows the last line feed."""
        carry = b""
        for chunk in chunks(self._files, self._descriptor):
            *whole, carry = (carry + chunk).split(b"\n")
            yield from whole
            if len(carry) > LINE_BYTES_MAX:
                raise self._corrupt(f"a line is longer than {LINE_BYTES_MAX} bytes", lines=1)
        if not carry:
            return
        if self._is_whole(carry):
            self.tail.needs_newline = True
            yield carry
        else:
            self.tail.torn = carry

    def _is_whole(self, line: bytes) -> bool:
        """Return whether a line without its line feed is an event all the same: its hash tells."""
        try:
            event = _decoder.decode(line)
        except NOT_DECODABLE:
            return False
        expected = event_hash(event.event_id, event.ts, event.type, event.payload, event.prev_hash)
        return event.event_hash == expected

    def _is_torn(self, line: bytes) -> bool:
        """Return whether a bad line is the unwritten end of the log: NUL bytes with no event behind them.

        A crash of the machine may leave pages that were never written; they read as NUL, which no event
        contains.
        """
        if b"\0" not in line:
            return False
        rest = b"".join(chunks(self._files, self._descriptor, offset=self.tail.length))
        if any(self._is_whole(later) for later in rest.split(b"\n")[1:]):
            return False
        self.tail.torn = rest
        self.tail.lines -= 1
        return True

    def _is_repeated(self, event_id: str, line: bytes) -> bool:
        """Return whether the log already holds this very line; the same id with other bytes is corruption."""
        if self._seen is None:
            self._seen = self._table_until(self.tail.length)
        digest = self._seen.get(event_id)
        if digest is None:
            return False
        if digest != hashlib.sha256(line).digest():
            raise self._corrupt(f"event_id {event_id} was used before for another event")
        return True

    def _table_until(self, length: int) -> dict[str, bytes]:
        table: dict[str, bytes] = {}
        carry, read = b"", 0
        for chunk in chunks(self._files, self._descriptor):
            *whole, carry = (carry + chunk).split(b"\n")
            for line in whole:
                if read >= length:
                    return table
                read += len(line) + 1
                table[_decoder.decode(line).event_id] = hashlib.sha256(line).digest()
        return table

    def _corrupt(self, reason: str, lines: int = 0) -> LogCorrupt:
        return LogCorrupt(self._path, self.tail.lines + lines, reason)
