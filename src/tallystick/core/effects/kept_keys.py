"""Keys of effects that outlive the facts that told of them: what a removal leaves is held by its line.

While a job is there, its facts hold the rows of its keys. When it goes, or turns of it, the line that says so
carries a print of the keys that stay, so that none of them is changed or taken away unseen: each is the proof
that something was done and must not be done again. When keys go by right, another line names each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import of_effect
from tallystick.core.audit.removals import PrunedRow
from tallystick.core.effects.rows import EffectRow
from tallystick.core.remote.rows import place_of_step

KEEPING: Final = "keep_effects"
"""The author of removals of keys, in the log of removals."""

_LIST: Final = "["


def print_of(keys: Iterable[EffectRow]) -> str:
    """Return what a line says of the keys that it leaves: how many, and a hash of them all."""
    return _together(map(_leaf, keys))


def named(keys: Iterable[EffectRow]) -> str:
    """Return what a line says of keys that go: of each its turn and its hash."""
    return msgspec.json.encode(sorted((_turn(key), _leaf(key)) for key in keys)).decode()


def judge_kept(lines: Sequence[PrunedRow], keys: Iterable[EffectRow]) -> Iterator[str]:
    """Say which removals of a job have left other keys than those that are there, or went by right since."""
    ends = [line for line in lines if not _names_keys(line)]
    left: defaultdict[int, list[str]] = defaultdict(list)
    there = [(_turn(key), _leaf(key)) for key in keys]
    gone = (one for line in lines if _names_keys(line) for one in _named(line))
    for turn, leaf in (*there, *gone):
        line = line_of(ends, turn)
        if line is not None:
            left[line.seq].append(leaf)
    for line in ends:
        # Older lines say nothing of keys.
        if line.keys is not None and line.keys != _together(left[line.seq]):
            said = line.keys.partition(":")[0] or "none"
            yield f"removal {line.seq} has left {said} keys of effects, and they are not those that are kept"


def line_of(lines: Iterable[PrunedRow], turn: int) -> PrunedRow | None:
    """Return the line of a job, in the order of the log, that a turn went with; None if it is there."""
    return next((line for line in lines if line.whole or turn <= line.dimension), None)


def _names_keys(line: PrunedRow) -> bool:
    return line.keys is not None and line.keys.startswith(_LIST)


def _named(line: PrunedRow) -> list[tuple[int, str]]:
    """Return the keys that a line names; none if that cannot be read, which the hash of the line shows."""
    try:
        return msgspec.json.decode(line.keys or "[]", type=list[tuple[int, str]])
    except msgspec.DecodeError:
        return []


def _turn(key: EffectRow) -> int:
    """Return the turn of a key; the first if its row does not say it any more, which its hash shows."""
    place = place_of_step(key.unit)
    return 0 if place is None else place[0]


def _leaf(key: EffectRow) -> str:
    return sha256(f"{key.exec_id}\0{of_effect(key)}\0".encode()).hexdigest()


def _together(leaves: Iterable[str]) -> str:
    """Return the print of keys in any order; nothing for none.

    >>> _together([]), _together(["b", "a"]) == _together(["a", "b"]), _together(["a"])[:6]
    ('', True, '1:ca97')
    """
    each = sorted(leaves)
    return f"{len(each)}:{sha256(' '.join(each).encode()).hexdigest()}" if each else ""
