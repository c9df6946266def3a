"""What a disk may hold when the power fails: all that was synced, and of the rest whatever it likes.

A write that was not synced may be there, be missing, or be there in part: a disk writes sectors, in any
order. What was synced is there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from enum import Enum

from tests.power_loss.recorder import Note, Remove, Sync, Truncate, Write

SECTOR = 512

Image = dict[str, bytes]


class Loss(Enum):
    """How a disk treats what was not synced."""

    DROPPED = "nothing of it is there"
    PREFIX = "it is there up to some moment"
    TORN = "it is there up to some moment, and the last write in part"
    RANDOM = "any of its sectors are there"


class Disk:
    """The notes of a recording, taken in one after the other."""

    def __init__(self) -> None:
        self._synced: dict[str, bytearray] = {}
        self._pending: list[tuple[int, Write | Truncate | Remove]] = []
        self._place = 0

    def take(self, note: Note) -> None:
        """Let the next thing happen."""
        match note:
            case Sync(file, since):
                if file not in self._synced:
                    # With the first sync of a new journal or log SQLite syncs the folder too.
                    self._settle(lambda item: isinstance(item, Remove), since)
                    self._synced[file] = bytearray()
                self._settle(lambda item: item.file == file, since)
            case Remove(file, synced=True):
                self._pending = [(place, item) for place, item in self._pending if item.file != file]
                self._synced.pop(file, None)
            case Write() | Truncate() | Remove():
                self._pending.append((self._place, note))
        self._place += 1

    def _settle(self, chosen: Callable[[Write | Truncate | Remove], bool], since: int) -> None:
        """Make durable what is chosen of that which happened before."""
        left = []
        for place, item in self._pending:
            if place < since and chosen(item):
                _apply(self._synced, [item])
            else:
                left.append((place, item))
        self._pending = left

    @property
    def owes(self) -> bool:
        """Tell whether there is anything that a power cut could take."""
        return bool(self._pending)

    def image(self, loss: Loss, chance: random.Random) -> Image:
        """Return the files as they are found after a power cut now."""
        files = {name: bytearray(content) for name, content in self._synced.items()}
        _apply(files, self._kept(loss, chance))
        return {name: bytes(content) for name, content in files.items()}

    def _kept(self, loss: Loss, chance: random.Random) -> list[Write | Truncate | Remove]:
        items = [item for _place, item in self._pending]
        if loss is Loss.DROPPED or not items:
            return []
        if loss is Loss.RANDOM:
            return [piece for item in items for piece in _sectors(item) if chance.random() < 0.5]
        kept = items[: chance.randrange(len(items) + 1)]
        if loss is Loss.TORN and kept and isinstance(kept[-1], Write):
            last = kept.pop()
            kept += _sectors(last)[: chance.randrange(len(last.data) // SECTOR + 1)]
        return kept


def _sectors(item: Write | Truncate | Remove) -> list[Write | Truncate | Remove]:
    """Return a write in the pieces in which a disk writes it."""
    if not isinstance(item, Write):
        return [item]
    pieces: list[Write | Truncate | Remove] = []
    offset, end = item.offset, item.offset + len(item.data)
    while offset < end:
        until = min(end, (offset // SECTOR + 1) * SECTOR)
        pieces.append(Write(item.file, offset, item.data[offset - item.offset : until - item.offset]))
        offset = until
    return pieces


def _apply(files: dict[str, bytearray], items: Iterable[Write | Truncate | Remove]) -> None:
    for item in items:
        if isinstance(item, Remove):
            files.pop(item.file, None)
            continue
        content = files.setdefault(item.file, bytearray())
        if isinstance(item, Truncate):
            content[:] = content[: item.size].ljust(item.size, b"\0")
            continue
        if len(content) < item.offset:
            content.extend(bytes(item.offset - len(content)))
        content[item.offset : item.offset + len(item.data)] = item.data
