"""Holds: a flag that keeps a job from being claimed, and when it may be set and cleared.

A hold is not a state. What runs goes on to its next call, what waits goes on waiting, signals and deadlines
take their course; only a claim passes a held job by.
"""

from __future__ import annotations

from enum import StrEnum


class Hold(StrEnum):
    """Why workers do not claim a job."""

    PAUSED = "PAUSED"
    IN_DOUBT = "IN_DOUBT"
    MISMATCH = "MISMATCH"
    RESTORED = "RESTORED"
    SUSPEND_SWALLOWED = "SUSPEND_SWALLOWED"
    # The database did not take what the job, or a sweep for it, wrote.
    REFUSED = "REFUSED"


class Held(StrEnum):
    """What became of the wish to hold a job; the value is the sentence people read."""

    HELD = "held; workers do not claim it until it is resumed"
    ASKED = "held; it runs now and stops at its next call"
    ALREADY = "it was held before, and stays so"
    ENDED = "the job has ended, or is being cancelled"
    MOVED = "the job has gone on since, and stays as it is"


class Resumed(StrEnum):
    """What became of the wish to resume a job; the value is the sentence people read."""

    FREE = "resumed; it goes on when what it waits for is there"
    NOT_HELD = "it was not held"
    ENDED = "the job has ended"


def decide_hold(*, final: bool, cancelling: bool, held: bool, live: bool) -> Held:
    """Say what holding a job does.

    A job that is being cancelled keeps its grace: a hold would let it end without its clean-up. A fact
    is written only where no attempt is live; otherwise the holder writes it, when it stops.
    """
    if final or cancelling:
        return Held.ENDED
    if held:
        return Held.ALREADY
    return Held.ASKED if live else Held.HELD


def decide_resume(*, final: bool, held: bool) -> Resumed:
    """Say what resuming a job does."""
    if final:
        return Resumed.ENDED
    return Resumed.FREE if held else Resumed.NOT_HELD


def stops_here(*, held: bool, cancelling: bool) -> bool:
    """Tell whether a running segment ends at its next call because its job is held.

    A cancellation goes before a hold: what is to end is not kept.
    """
    return held and not cancelling
