"""Seals: what the books of a store say at one moment, as a small record that is kept elsewhere.

Chains and fingerprints find a change that does not change all of a history. A person who can write to
the database can write a whole history anew, and then only what was noted before, in another place, tells. A
seal notes the end of every chain: those of jobs that have ended as the root of a Merkle tree, those that
still move one by one, and the ends of the log of removals and of the chain of acts.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

SEAL_FORM: Final = 1

YOUNG_MS: Final = 60_000
"""Jobs that are younger are listed: one that a transaction makes may come to light a little later."""


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """The end of a chain that may go on, as a seal lists it."""

    job_id: str
    n: int
    hash: str


class SealSignature(msgspec.Struct, frozen=True):
    """The signer of a seal: an Ed25519 signature and the public key to check it with, in hexadecimal."""

    key: str
    ed25519: str


class Seal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a store says at one moment; `jobs` counts the leaves of the tree.

    `made_at` is by the clock of its maker, for people; `at` is the birth of the youngest job, by the store.
    """

    form: int
    made_at: int
    at: int
    jobs: int
    root: str
    removals: int
    removals_hash: str
    listed: tuple[Listed, ...] = ()
    # Where the chain of acts ended; seals of before it was one have none.
    acts: int = 0
    acts_hash: str = ""
    signature: SealSignature | None = None

    def signed_text(self) -> bytes:
        """Return what a signature is over: everything but the signature."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=None))


class Tree:
    r"""The root of a Merkle tree whose leaves come one by one: it keeps one hash for each level.

    >>> one, both = Tree(), Tree()
    >>> for leaf in (b"a", b"b"):
    ...     both.add(leaf)
    >>> one.add(b"a")
    >>> one.root() == b"a", both.root() == sha256(b"\1ab").digest(), both.leaves
    (True, True, 2)
    """

    def __init__(self) -> None:
        """Begin without leaves."""
        self.leaves = 0
        self._levels: list[bytes | None] = []

    def add(self, leaf: bytes) -> None:
        """Add the next leaf."""
        self.leaves += 1
        node = leaf
        for level, waiting in enumerate(self._levels):
            if waiting is None:
                self._levels[level] = node
                return
            self._levels[level], node = None, _joined(waiting, node)
        self._levels.append(node)

    def root(self) -> bytes:
        """Return the root; what stands alone at a level goes up as it is."""
        root = b""
        for waiting in self._levels:
            if waiting is not None:
                root = _joined(waiting, root) if root else waiting
        return root


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
