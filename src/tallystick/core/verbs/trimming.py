"""Trimming: which turns of a loop go, and what the fact says that tells of it.

The first fact of a job says what was submitted, and it goes with the first turn. So the fact of a trimming
carries it on, with all else that the check of a whole history would take from what is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from tallystick.core.audit.fingerprints import fingerprint
from tallystick.core.values import TurnEnd

TRIM: Final = "trim"
"""The type of the fact that tells of a trimming."""

TRIMMING: Final = "trimming"
"""The author of removed turns, in the log of removals."""


class FirstFact(msgspec.Struct, frozen=True):
    """The first fact of a job, as its fact of a trimming carries it on."""

    type: str
    at: int
    said: dict[str, object]


class Trimmed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the fact of a trimming says of the turns that are gone.

    `turns` and `attempts` count them, `last_n` and `head` are the place and the hash of their last fact,
    `given` is the fingerprint of the arguments that the job was born with, and `start` that of what its row
    says about the message that began it. `step` is the remote step that was opened last; older facts do not
    tell.
    """

    turns: int
    last_n: int
    head: str
    attempts: int
    first: FirstFact
    start: str
    given: str | None = None
    step: str | msgspec.UnsetType | None = msgspec.UNSET


def trims_now(dimension: int, keep: int) -> bool:
    """Tell whether a job trims before it leaves this turn: twice as many turns are there as are kept.

    >>> [turn for turn in range(12) if trims_now(turn, 3)]
    [5, 8, 11]
    """
    return dimension + 1 >= 2 * keep and (dimension + 1) % keep == 0


def last_to_go(ends: Sequence[TurnEnd], before: int, dimension: int, keep: int, most: int) -> TurnEnd | None:
    """Return the end of the last turn to go now: whole turns, about `most` facts of them, and at least one.

    `ends` are those of the oldest turns, in order; `before` is the place in front of the first fact.

    >>> ends = [TurnEnd(turn, 10 * turn + 10, b"", turn) for turn in range(6)]
    >>> [(last_to_go(ends, 0, 5, 2, most) or ends[5]).dimension for most in (1, 25, 1000)]
    [0, 1, 3]
    >>> last_to_go(ends[4:], 40, 5, 2, 1000) is None
    True
    """
    going = [end for end in ends if end.dimension <= dimension - keep]
    fitting = [end for end in going if end.n - before <= most]
    chosen = fitting or going[:1]
    return chosen[-1] if chosen else None


def start_print(redeliveries: int, acked_at: int | None) -> str:
    """Return the fingerprint of what the row of a job says about the message that began it."""
    return fingerprint(redeliveries, acked_at)
