"""The journal of a stage as bytes: one JSON record per line, each sealed by a digest over all before it.

A line is sixteen hexadecimal digits, a space, a JSON object, a line feed. The digits are a BLAKE2 digest
of the previous line's digest and this line's JSON. So a record that was changed, dropped, doubled or moved
shows; only the last line can be torn, because nothing is written after it before it is durable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

import msgspec

from tallystick.core.chain import SHORT_GENESIS, short_link_hash
from tallystick.errors import JournalCorrupt

MAGIC: Final = b"tallystick stage journal 1\n"
_DIGEST_DIGITS: Final = 2 * len(SHORT_GENESIS)

# Slot state, attempts, key of the item, and the value or the failure as JSON.
Row: TypeAlias = tuple[int, int, str, msgspec.Raw]


class JournalOpened(msgspec.Struct, tag="open", tag_field="kind", forbid_unknown_fields=True):
    """A run of the stage begins at seq `next`; whatever is below has its outcome."""

    stage: str
    run: int
    next: int
    at_ms: int


class Batched(msgspec.Struct, tag="batch", tag_field="kind", forbid_unknown_fields=True):
    """The outcomes of consecutive seqs. With this line durable they are never computed again.

    `delivered` is the seq up to which the commit function has returned, `started` how many attempts this
    run has begun so far.
    """

    first: int
    delivered: int
    started: int
    rows: list[Row]


class Cut(msgspec.Struct, tag="cut", tag_field="kind", forbid_unknown_fields=True):
    """A crash had left an unfinished line here; it was removed."""

    offset: int
    bytes: int
    digest: str


class Closed(msgspec.Struct, tag="close", tag_field="kind", forbid_unknown_fields=True):
    """A run of the stage ended in order."""

    delivered: int
    started: int
    complete: bool


Record: TypeAlias = JournalOpened | Batched | Cut | Closed

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Record)


class JournalLine(NamedTuple):
    """One good line: its record, the chain after it, and where it ends in the file."""

    record: Record
    chain: bytes
    end: int


class TornLine(NamedTuple):
    """What a crash left after the last good line."""

    offset: int
    bytes: int
    digest: str


def seal(record: Record, chain: bytes) -> tuple[bytes, bytes]:
    """Return the line of a record and the chain after it."""
    body = _encoder.encode(record)
    after = short_link_hash(body, chain)
    return after.hex().encode() + b" " + body + b"\n", after


def lines(path: Path, file: BinaryIO) -> Iterator[JournalLine | TornLine]:
    """Return the lines of a journal in order; at most the last thing returned is what a crash tore.

    A bad line with anything behind it was not torn by a crash, and raises `JournalCorrupt`.
    """
    start = file.read(len(MAGIC))
    if not MAGIC.startswith(start):
        raise JournalCorrupt(
            f"{path} is not the journal of a stage; give the stage another file", path=str(path)
        )
    if start != MAGIC:
        if start:
            yield TornLine(0, len(start), hashlib.sha256(start).hexdigest())
        return
    chain, end = SHORT_GENESIS, len(MAGIC)
    for raw in file:
        found = _read(raw, chain)
        if found is None:
            behind = file.read(1)
            if behind:
                raise JournalCorrupt(
                    f"{path} is damaged at byte {end}: a line in the middle does not fit its digest. "
                    "Restore the file from a copy, or begin a new journal",
                    path=str(path),
                    offset=end,
                )
            yield TornLine(end, len(raw), hashlib.sha256(raw).hexdigest())
            return
        record, chain = found
        end += len(raw)
        yield JournalLine(record, chain, end)


def _read(raw: bytes, chain: bytes) -> tuple[Record, bytes] | None:
    body = raw[_DIGEST_DIGITS + 1 : -1]
    after = short_link_hash(body, chain)
    if raw != after.hex().encode() + b" " + body + b"\n":
        return None
    return _decoder.decode(body), after
