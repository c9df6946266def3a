"""Hooks: which function of a program is owed to a job, by where the job stands.

A job carries the names of the hooks that its program declares. Where it stands, the row itself says which of
them is owed: both databases compute the column `hook_due` by the rule below, in the statement that ends or
holds the job, whichever it is. Jobs without hooks have nothing to compute.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Final

from tallystick.core.lifecycles import JobState
from tallystick.core.retry import RetryPolicy, backoff_ms

HELD: Final = "held"
"""The hook of a job that waits for a person."""

MISSED: Final = "missed"
"""What the row says was told of a hold that was over before any worker looked: its hook is still owed."""

HOOK_OF: Final = {
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED_FINAL: "failed",
    JobState.CANCELLED: "cancelled",
}
"""The hook of each end."""

_AGAIN: Final = RetryPolicy(base_ms=1_000, factor=2.0, cap_ms=600_000)


def hook_of(state: str, hold: str | None, told: str | None) -> str | None:
    """Return the hook that is meant for a job which stands there; that of a missed hold comes first.

    >>> hook_of("FAILED_FINAL", None, None), hook_of("QUEUED", "MISMATCH", None)
    ('failed', 'held')
    >>> hook_of("QUEUED", None, None), hook_of("FAILED_FINAL", None, MISSED)
    (None, 'held')
    """
    if told == MISSED:
        return HELD
    return HOOK_OF.get(JobState(state), None if hold is None else HELD)


def named(hooks: Iterable[str]) -> str | None:
    """Return the names of hooks as the row of a job has them; None for a program without hooks.

    >>> named(["held", "failed"]), named([])
    ('failed held', None)
    """
    return " ".join(sorted(set(hooks))) or None


def choices() -> list[str | None]:
    """Return all that the row of a job may say of its hooks.

    >>> choices()[:2], len(choices())
    ([None, 'held'], 16)
    """
    names = (HELD, *HOOK_OF.values())
    return [named(some) for count in range(len(names) + 1) for some in combinations(names, count)]


def again_ms(tries: int) -> int:
    """Return how long a hook that raised is left alone; it is tried for ever.

    >>> again_ms(1), again_ms(5), again_ms(50)
    (1000, 16000, 600000)
    """
    return backoff_ms(_AGAIN, tries)


def due_expression() -> str:
    """Return the SQL of `hook_due`: since when, or not before when, a hook is owed; null if none is.

    Names are no part of each other, so the row names a hook if taking the name away changes the text.
    """
    names = "".join(f"\n       WHEN state = '{state.value}' THEN '{name}'" for state, name in HOOK_OF.items())
    hook = (
        f"CASE WHEN hook_told = '{MISSED}' THEN '{HELD}'{names}"
        f"\n       WHEN hold IS NOT NULL THEN '{HELD}' END"
    )
    return f"""\
CASE WHEN hooks IS NOT NULL
      AND replace(hooks, {hook}, '') <> hooks
      AND coalesce(hook_told, '') <> {hook}
     THEN coalesce(hook_at, updated_at) END"""
