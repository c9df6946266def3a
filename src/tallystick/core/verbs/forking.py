"""Forking: when a new job is made from the records of another, and which of them it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Forking(StrEnum):
    """What becomes of the wish for a fork."""

    MAKE = "a new job is made"
    KNOWN = "it was made before and is the answer"
    CONFLICT = "another fork was made under this id"
    NOT_FAILED = "only a job that has failed is retried"
    KEY_MOVED = "another job has the key of the one that failed"


def decide_fork(
    *, retry: bool, failed: bool, retried: bool, moved: bool, reserved: str | None, asked: str | None
) -> Forking:
    """Say what becomes of a wish; `reserved` is what was asked under its id before, `asked` what is now.

    `moved`: the key of the job belongs to another by now, which was submitted under it when this one had
    ended. A retry would be a second job under that key.
    """
    if retry and retried:
        return Forking.KNOWN
    if retry and not failed:
        return Forking.NOT_FAILED
    if retry and moved:
        return Forking.KEY_MOVED
    if reserved is None:
        return Forking.MAKE
    return Forking.KNOWN if reserved == asked else Forking.CONFLICT


def kept_before(places: Sequence[int], point: int | None) -> int:
    """Return how many of these records, which are in order, a fork keeps: those before the point, or all."""
    return sum(1 for place in places if point is None or place < point)
