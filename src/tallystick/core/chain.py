"""The hash chain of a job: every fact names the one before it, so nothing can be taken out or changed.

The fields of a fact are joined by NUL bytes. None of them can contain one (names and identifiers are plain
ASCII, JSON escapes control characters), so two different facts never give the same bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tallystick.core.hash_chain import GENESIS, link_hash
from tallystick.core.tuples import make


class Link(NamedTuple):
    """The place of one fact: its number, the hash before it, and its own."""

    n: int
    prev_hash: bytes
    event_hash: bytes


class Era:
    """A time in which what a process remembers of a store is true.

    It ends when a connection to the server is lost, or when another server answers. A chain is *known* in the
    era in which its end was last seen, and *doubtful* in every other: then the end is read again before
    anything is written behind it.
    """

    __slots__ = ("server",)

    def __init__(self, server: str = "") -> None:
        """Begin an era of this server."""
        self.server = server


DOUBTFUL: Final = Era("nobody knows")
"""The era of a chain whose last write may or may not be durable; no store is ever in it."""


class Chain:
    """The end of a job's chain, held by its one author.

    A place is taken when a fact is written, under the lock of the store, never when it is wished for. So
    facts become durable in the order of their numbers, and a refused one leaves no gap. `era` is when its end
    was last seen.
    """

    __slots__ = ("era", "head", "job_id", "n")

    def __init__(self, job_id: str, n: int = 0, head: bytes = GENESIS, era: Era | None = None) -> None:
        """Go on from fact `n`."""
        self.job_id = job_id
        self.n = n
        self.head = head
        self.era = era

    def extend(self, kind: str, at: int, attempt: int, payload: str) -> Link:
        """Take the next place."""
        n, before = self.n + 1, self.head
        self.n = n
        self.head = head = event_hash(before, self.job_id, n, kind, at, attempt, payload)
        return make(Link, (n, before, head))

    def rewind(self, link: Link) -> None:
        """Give a place back: what was to stand there was not written."""
        self.n, self.head = link.n - 1, link.prev_hash


def event_hash(prev: bytes, job_id: str, n: int, kind: str, at: int, attempt: int, payload: str) -> bytes:
    """Return the hash of fact `n`; `prev` is the hash before it, empty for the first."""
    return link_hash(f"{job_id}\0{n}\0{kind}\0{at}\0{attempt}\0{payload}\0".encode(), prev)


def step_payload(
    name: str,
    occurrence: int,
    state: str,
    ledger: int,
    result: str | None,
    error: str | None,
    notes: str | None,
) -> str:
    """Return the payload of the fact that an inline step's row is."""
    return f"{name}\0{occurrence}\0{state}\0{ledger}\0{result or ''}\0{error or ''}\0{notes or ''}"


class StepFact(NamedTuple):
    """What the payload of an inline step's fact says."""

    name: str
    occurrence: int
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None


def read_step_payload(payload: str) -> StepFact | None:
    """Return the parts of what `step_payload` made; None when it is the payload of another fact.

    >>> read_step_payload(step_payload("quote", 1, "SUCCEEDED", 1, "42", None, None)).result
    '42'
    """
    parts = payload.split("\0")
    if len(parts) != len(StepFact._fields):
        return None
    name, occurrence, state, ledger, *values = parts
    result, error, notes = (value or None for value in values)
    return StepFact(name, int(occurrence), state, int(ledger), result, error, notes)
