"""What one submission can be told, and how that is checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from tallystick.app.api.retrying import Duration, When
from tallystick.core.durations import duration_ms
from tallystick.core.queues.reusing import KeyRule
from tallystick.core.schedules.timetable import delay_ms
from tallystick.defaults import PRIORITY, QUEUE
from tallystick.errors import BadInput, BadSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What one submission can be told."""

    queue: str = QUEUE
    priority: int = PRIORITY
    delay: When = 0
    deadline_ms: int | None = None
    idempotency_key: str | None = None
    idempotent: bool = False
    within: object = None
    tags: tuple[str, ...] = ()
    detached: bool = False
    tenant: str | None = None
    limit_key: str | None = None
    rule: KeyRule | None = None


NEED_KEY: Final = ("debounce", "replace")
"""Rules for which the arguments cannot be the key: they are what changes."""


def key_rule(
    reuse: Literal["never", "after_end", "after_success"] | None,
    unique: Literal["while_active"] | None,
    debounce: Duration | None,
    max_wait: Duration | None,
    *,
    replaces: bool,
) -> KeyRule | None:
    """Return the rule that these options mean, None if they say nothing; refuse what makes no sense."""
    if reuse not in (None, "never", "after_end", "after_success"):
        raise BadInput(f"reuse={reuse!r}: it is 'never', 'after_end' or 'after_success'")
    if unique not in (None, "while_active"):
        raise BadInput(f"unique={unique!r}: it is 'while_active'")
    given = {"reuse": reuse, "unique": unique, "debounce": debounce, "replace": replaces or None}
    said = [name for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise BadInput(f"{said[0]}= and {said[1]}= say two things about one key: use one of them")
    if max_wait is not None and debounce is None:
        raise BadInput("max_wait= is for debounce=")
    if debounce is not None:
        quiet_ms, longest_ms = duration_ms(debounce), None if max_wait is None else duration_ms(max_wait)
        if not quiet_ms or (longest_ms is not None and longest_ms < quiet_ms):
            raise BadInput("debounce must be above zero; max_wait must be at least debounce")
        return KeyRule("debounce", quiet_ms, longest_ms)
    if replaces:
        return KeyRule("replace")
    if unique is not None:
        return KeyRule(unique)
    return None if reuse is None else KeyRule(reuse)


def refuse_unscheduled(options: SubmitOptions) -> None:
    """Refuse what the jobs of a schedule cannot be told."""
    if isinstance(options.delay, datetime):
        raise BadSchedule(
            f"delay={options.delay.isoformat()} is one instant, and a schedule has many ticks: give a "
            "duration, which is counted from each tick on, or the instant itself as the timetable"
        )
    if options.idempotency_key is not None or options.rule is not None:
        raise BadSchedule(
            "a schedule gives each of its jobs the key of its tick: leave out idempotency_key, reuse, "
            "unique, debounce and replace; overlap= says what becomes of a tick while a job still runs"
        )
    if options.within is not None:
        raise BadSchedule("a schedule is kept by itself and not within a transaction: leave out within")


def checked_delay(delay: When) -> When:
    """Return a delay that can be read; how long it is, is known when a job is submitted."""
    delay_ms(delay, 0)
    return delay


def whole(priority: int) -> int:
    """Return a priority that is a whole number."""
    try:
        return operator.index(priority)
    except TypeError:
        raise BadInput(f"priority must be a whole number, not {priority!r}") from None


def read_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags, each once."""
    if isinstance(tags, str):
        raise BadInput(
            f"tags are a list, tags=[{tags!r}]: a text alone would be a tag for each of its letters"
        )
    return tuple(dict.fromkeys(tags))
