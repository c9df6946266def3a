"""The hash chain of every log: the hash of a record covers its content and the hash of the record before it.

So no record can be changed, removed, repeated or moved without a trace. Three logs are chained: the facts of
a job (`core/chain.py`), the events of a run (`log/event.py`) and the lines of a stage's journal
(`stage/journal/format.py`). Each of them says what the content of its records is. The bytes that are hashed
never change, because files that were written must verify for ever.
"""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import Final

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


def short_link_hash(content: bytes, before: bytes) -> bytes:
    """Return the eight bytes of BLAKE2 that seal a line which follows the hash `before`.

    They find what a crash or a failing disk did to a file; they are too short to stop a forger.

    >>> short_link_hash(b"second", short_link_hash(b"first", SHORT_GENESIS)).hex()
    '1db4a3133acf6021'
    """
    return blake2b(content, digest_size=len(SHORT_GENESIS), key=before).digest()
