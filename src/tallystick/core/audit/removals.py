"""The log of removals: what retention and trimming took away by right, in a chain over the whole store.

A job whose books are gone has left a line here with the end of its chain, so whatever is missing without a
line was lost, or taken. A line is hashed as facts are: its fields, a NUL after each, then the hash before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tallystick.core.chain import GENESIS, line_hash, link_hash

RETENTION: Final = "retention"
"""The author of removals that the retention time asks for, unless another is named."""


class Removal(NamedTuple):
    """What goes: a whole job, or its facts up to `last_n`, which is the last one of turn `dimension`."""

    job_id: str
    whole: bool
    dimension: int
    last_n: int
    head_hash: bytes
    born_at: int
    # What is said of keys of effects: those that stay, or those that go.
    keys: str = ""


class PrunedRow(NamedTuple):
    """A line of the log, as its table keeps it; hashes are hexadecimal, for people to compare."""

    seq: int
    job_id: str
    whole: int
    dimension: int
    last_n: int
    head_hash: str
    born_at: int
    at: int
    who: str
    prev_hash: str
    event_hash: str
    # What is said of keys of effects; older lines say nothing.
    keys: str | None

    @property
    def made_hash(self) -> str:
        """Return the hash that this line must have."""
        told = () if self.keys is None else (self.keys,)
        return line_hash((*self[:9], *told), self.prev_hash)

    def again(self, keys: str) -> Removal:
        """Return a further removal of what this job has left: the keys that are named."""
        head = bytes.fromhex(self.head_hash)
        return Removal(self.job_id, False, self.dimension, self.last_n, head, self.born_at, keys)


class ChainEnd(NamedTuple):
    """The end of the chain of a job: the place and the hash of its last fact."""

    job_id: str
    n: int
    event_hash: bytes

    def leaf(self) -> bytes:
        """Return what stands for it in the tree of a seal."""
        return link_hash(f"\0{self.job_id}\0{self.n}\0".encode(), self.event_hash)


class LogEnd(NamedTuple):
    """Where the log ends: its last number and hash."""

    seq: int = 0
    event_hash: str = GENESIS.hex()


def lines_of(removals: Iterable[Removal], end: LogEnd, at: int, who: str) -> list[PrunedRow]:
    """Return the lines that say who removed this, behind the end of the log.

    >>> first, second = lines_of([Removal("a", True, 0, 4, b"h", 1)] * 2, LogEnd(), 9, "retention")
    >>> (second.seq, second.prev_hash == first.event_hash, first.event_hash == first.made_hash)
    (2, True, True)
    """
    lines = []
    for seq, one in enumerate(removals, start=end.seq + 1):
        fields = (one.job_id, int(one.whole), one.dimension, one.last_n, one.head_hash.hex(), one.born_at)
        bare = PrunedRow(seq, *fields, at, who, end.event_hash, "", one.keys)
        line = bare._replace(event_hash=bare.made_hash)
        lines.append(line)
        end = LogEnd(seq, line.event_hash)
    return lines


def judge_log(lines: Iterable[PrunedRow], end: LogEnd) -> Iterator[tuple[str, str]]:
    """Say what is wrong with the log behind `end`: the job of a line, and the words."""
    for line in lines:
        if line.seq != end.seq + 1:
            yield line.job_id, f"removal {end.seq + 1} is missing from the log of removals"
        elif line.prev_hash != end.event_hash:
            yield line.job_id, f"removal {line.seq} does not follow the one before it"
        try:
            is_same = line.made_hash == line.event_hash
        except ValueError:
            is_same = False
        if not is_same:
            yield line.job_id, f"removal {line.seq} was changed after it was written"
        end = LogEnd(line.seq, line.event_hash)
