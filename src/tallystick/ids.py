"""The only door to chance: identifiers and random numbers.

Job and message identifiers are version-7 UUIDs: unique everywhere and, within a process, in the order
in which they were drawn, so that new rows land at the end of their index.
"""

from __future__ import annotations

import os
import random as _random
import re
import time
from typing import Protocol
from uuid import UUID


class Ids(Protocol):
    """Where identifiers and chance come from."""

    def new(self) -> str:
        """Return a new identifier, greater than every one this source gave before."""
        ...

    def many(self, count: int, *, after: str = "") -> list[str]:
        """Return new identifiers in ascending order, all of them greater than `after`.

        `after` is an identifier of the same kind of source, perhaps drawn by another process.
        """
        ...

    def token(self) -> str:
        """Return 128 unguessable bits as hexadecimal text."""
        ...

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...


class SystemIds:
    """Identifiers drawn from the operating system's entropy."""

    def __init__(self) -> None:
        """Start a sequence of its own."""
        self._last = 0
        self._source = _random.Random(os.urandom(16))  # noqa: S311 (user-visible chance, not a secret)

    def new(self) -> str:
        """Return a version-7 UUID, strictly greater than the last one.

        Two draws within one millisecond are ordered by the random tail, which is raised by a random
        step instead of being drawn again.
        """
        entropy = int.from_bytes(os.urandom(10))
        candidate = (time.time_ns() // 1_000_000) << 74 | entropy & _TAIL
        if candidate <= self._last:
            candidate = self._last + 1 + (entropy & 0xFFFFFFFF)
        self._last = candidate
        low = f"{candidate & _LOW | _VARIANT:016x}"
        return f"{_high_text(candidate >> 62)}{low[:4]}-{low[4:]}"

    def many(self, count: int, *, after: str = "") -> list[str]:
        """Return version-7 UUIDs in ascending order, drawn with two calls for entropy in all.

        A clock that went back since `after` was drawn is overruled: the identifiers go on from `after`. Next
        to an identifier of another kind of source nothing can be promised.
        """
        first = self.new()
        if first <= after and is_uuid(after):
            number = int(after.replace("-", ""), 16)
            self._last = number >> 80 << 74 | (number >> 64 & 0xFFF) << 62 | number & _LOW
            first = self.new()
        drawn = [first]
        if count == 1:
            return drawn
        # One random step for all of them: they need to be unique and ascending, not unguessable.
        step = 1 + int.from_bytes(os.urandom(4))
        candidate, last = self._last + step, self._last + step * (count - 1)
        while candidate <= last:
            # Up to the next multiple of 2**48 only the last twelve digits differ.
            stop = min(last, candidate | _NODE) + 1
            upper = candidate >> 48
            prefix = f"{_high_text(upper >> 14)}{upper & 0x3FFF | 0x8000:04x}-"
            # With a one in front, hex() keeps leading zeros, and it is faster than a format.
            first_node = _NODE + 1 + (candidate & _NODE)
            numbers = range(first_node, first_node + stop - candidate, step)
            drawn += [prefix + hex(number)[3:] for number in numbers]
            candidate += step * len(numbers)
        self._last = last
        return drawn

    def token(self) -> str:
        """Return 128 bits of the operating system's entropy."""
        return os.urandom(16).hex()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._source.random()


class CountingIds:
    """Identifiers that tests can foresee: `id-1`, `id-2`, ..."""

    def __init__(self, prefix: str = "id") -> None:
        """Start counting at 1."""
        self._prefix = prefix
        self._count = 0
        self._source = _random.Random(0)  # noqa: S311 (tests want the same numbers every time)

    def new(self) -> str:
        """Return the next identifier; padded, so that text order is the order of drawing."""
        self._count += 1
        return f"{self._prefix}-{self._count:08d}"

    def many(self, count: int, *, after: str = "") -> list[str]:
        """Return the next identifiers; counting goes on from `after` if that is further on."""
        prefix, _, number = after.rpartition("-")
        if prefix == self._prefix:
            self._count = max(self._count, int(number))
        return [self.new() for _ in range(count)]

    def token(self) -> str:
        """Return the next identifier as if it were unguessable."""
        return self.new()

    def random(self) -> float:
        """Return the next number of a fixed sequence."""
        return self._source.random()


def is_uuid(text: str) -> bool:
    """Tell whether this is written as the identifiers of jobs are."""
    return _UUID.fullmatch(text) is not None


def _high_text(high: int) -> str:
    """Return the front of an identifier: the time, the version, and the first twelve random bits."""
    return f"{high >> 28 & 0xFFFFFFFF:08x}-{high >> 12 & 0xFFFF:04x}-7{high & 0xFFF:03x}-"


_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAIL = (1 << 74) - 1
_LOW = (1 << 62) - 1
_NODE = (1 << 48) - 1
_VARIANT = 2 << 62

__all__ = ["UUID", "CountingIds", "Ids", "SystemIds", "is_uuid"]
