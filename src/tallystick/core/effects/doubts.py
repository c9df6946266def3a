"""What is read of effects that have not ended, for those who explain a job or are to answer for it."""

from __future__ import annotations

from typing import NamedTuple

from tallystick.core.effects.rows import EffectRow


class AwaitedKey(NamedTuple):
    """A key that the step `unit` of a job waits for: the open effect of another job that has it.

    `job_state` is the state of that other job; None: it is not there any more.
    """

    unit: str
    owner: EffectRow
    job_state: str | None


class StuckEffect(NamedTuple):
    """An effect in doubt that no hold shows, and the state of its job; None: it is not there any more."""

    row: EffectRow
    job_state: str | None
