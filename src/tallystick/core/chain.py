"""Hash chains: the hash of a record covers its content and the hash of the record before it.

So no record can be changed, removed, repeated or moved without a trace. Three logs are chained: the facts of
a job (below), the events of a run (`log/event.py`) and the lines of a stage's journal
(`stage/journal/format.py`). Each of them says what the content of its records is. The bytes that are hashed
never change, because files that were written must verify for ever.

The fields of a job's fact are joined by NUL bytes. None of them can contain one (names and identifiers are
plain ASCII, JSON escapes control characters), so two different facts never give the same bytes. The payload
of every fact is JSON; that of a step's fact has a form number, because older files have it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import Final, Literal, NamedTuple

import msgspec

from tallystick.core.tuples import make

GENESIS: Final = b""
"""What stands before the first record of a chain of `link_hash`."""

SHORT_GENESIS: Final = bytes(8)
"""What stands before the first record of a chain of `short_link_hash`."""


def link_hash(content: bytes, before: bytes) -> bytes:
    """Return the SHA-256 hash of a record that follows the hash `before`.

    >>> link_hash(b"second", link_hash(b"first", GENESIS)).hex()[:16]
    'b4a7ec5fc5064c3a'
    """
    return sha256(content + before).digest()


def line_hash(fields: Iterable[object], before: str) -> str:
    r"""Return the hash of a line of fields, each with a NUL behind it; hashes are hexadecimal.

    >>> line_hash(["a", 1], GENESIS.hex()) == link_hash(b"a\0" + b"1\0", GENESIS).hex()
    True
    """
    return link_hash("".join(f"{field}\0" for field in fields).encode(), bytes.fromhex(before)).hex()


def short_link_hash(content: bytes, before: bytes) -> bytes:
    """Return the eight bytes of BLAKE2 that seal a line which follows the hash `before`.

    They find what a crash or a failing disk did to a file; they are too short to stop a forger.

    >>> short_link_hash(b"second", short_link_hash(b"first", SHORT_GENESIS)).hex()
    '1db4a3133acf6021'
    """
    return blake2b(content, digest_size=len(SHORT_GENESIS), key=before).digest()


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


DOUBTFUL: Final = Era("unknown")
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


class StepFact(NamedTuple):
    """What the payload of the fact says that the row of a step is; the last three are JSON."""

    name: str
    occurrence: int
    state: str
    ledger: int
    result: str | None
    error: str | None
    notes: str | None
    # Of a remote step: the fingerprint of what else its row says.
    row: str | None = None


def step_payload(
    name: str,
    occurrence: int,
    state: str,
    ledger: int,
    result: str | None,
    error: str | None,
    notes: str | None,
    row: str | None = None,
) -> str:
    """Return the payload of the fact that the row of a step is: JSON, as those of all other facts.

    Put together from the JSON that the row has, because every step passes here. Names need no escapes.

    >>> print(step_payload("quote", 1, "SUCCEEDED", 1_111_000_000_001, "42", None, None))
    {"form":1,"step":"quote","occurrence":1,"state":"SUCCEEDED","ledger":1111000000001,"result":42}
    """
    after = f',"result":{result}' if result is not None else ""
    if error is not None:
        after += f',"error":{error}'
    if notes is not None:
        after += f',"notes":{notes}'
    if row is not None:
        after += f',"row":"{row}"'
    return (
        f'{{"form":1,"step":"{name}","occurrence":{occurrence},"state":"{state}","ledger":{ledger}{after}}}'
    )


def old_step_payload(
    name: str,
    occurrence: int,
    state: str,
    ledger: int,
    result: str | None,
    error: str | None,
    notes: str | None,
) -> str:
    """Return the payload that a fact of form 0 has: the hashes of older files are over this."""
    return f"{name}\0{occurrence}\0{state}\0{ledger}\0{result or ''}\0{error or ''}\0{notes or ''}"


class _StepJson(msgspec.Struct, forbid_unknown_fields=True):
    form: Literal[1]
    step: str
    occurrence: int
    state: str
    ledger: int
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    notes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    row: str | None = None


_READ: Final = msgspec.json.Decoder(_StepJson)
# How many parts a fact of form 0 has: it knows no fingerprint.
_OLD_PARTS: Final = len(StepFact._fields) - 1


def read_step_payload(payload: str) -> StepFact | None:
    """Return the parts of the payload of a step's fact, of either form; None when it is that of another fact.

    >>> read_step_payload(step_payload("quote", 1, "SUCCEEDED", 1, "42", None, None)).result
    '42'
    """
    if "\0" not in payload:
        return _read_json(payload)
    parts = payload.split("\0")
    if len(parts) != _OLD_PARTS:
        return None
    name, occurrence, state, ledger, *values = parts
    result, error, notes = (value or None for value in values)
    return StepFact(name, int(occurrence), state, int(ledger), result, error, notes)


def _read_json(payload: str) -> StepFact | None:
    try:
        fact = _READ.decode(payload)
    except ValueError:  # of another fact, or no JSON at all
        return None
    result, error, notes = (
        None if isinstance(raw, msgspec.UnsetType) else bytes(raw).decode()
        for raw in (fact.result, fact.error, fact.notes)
    )
    return StepFact(fact.step, fact.occurrence, fact.state, fact.ledger, result, error, notes, fact.row)
