"""Retry rules: which errors are worth another attempt, how many attempts there are, and how long to wait.

Everything is a pure function of the policy, the attempt and a key. Two processes that judge the same
failure come to the same answer, to the millisecond.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tallystick.core.limits import DURATION_MS_MAX
from tallystick.errors import BadInput


class ErrorClass(StrEnum):
    """What an error says about the next attempt."""

    RETRYABLE = "RETRYABLE"
    FINAL = "FINAL"


class GiveUpReason(StrEnum):
    """Why there is no next attempt."""

    FINAL_ERROR = "FINAL_ERROR"
    BUDGET_SPENT = "BUDGET_SPENT"


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """The unit of work gets another attempt when the delay is over."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The unit of work has failed for good."""

    reason: GiveUpReason


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how fast a unit of work is tried again.

    The delay after attempt n is entry n of `table_ms` (the last entry from there on) or, without a
    table, `base_ms * factor ** (n - 1)` up to `cap_ms`. Jitter takes away up to its fraction of the delay
    and never adds to it, so that the cap and every budget computed from a table hold.

    Errors are declared by class name, bare or with the module. The closest declared ancestor of an
    error decides; an error without one is final.
    """

    attempts_max: int = 3
    base_ms: int = 1_000
    factor: float = 2.0
    cap_ms: int = 900_000
    jitter: float = 0.2
    table_ms: tuple[int, ...] = ()
    retryable: frozenset[str] = frozenset({"Exception"})
    final: frozenset[str] = frozenset({"tallystick.errors.NoRetry", "tallystick.errors.BadInput"})

    def __post_init__(self) -> None:
        rules = {
            "attempts_max must be at least 1": self.attempts_max >= 1,
            "base_ms must be between 0 and cap_ms": 0 <= self.base_ms <= self.cap_ms,
            "cap_ms must be at most a century": self.cap_ms <= DURATION_MS_MAX,
            "factor must be finite and at least 1": math.isfinite(self.factor) and self.factor >= 1,
            "jitter must be between 0 and 1": 0 <= self.jitter <= 1,
            "table_ms must hold delays between 0 and a century": all(
                0 <= delay_ms <= DURATION_MS_MAX for delay_ms in self.table_ms
            ),
            "an error cannot be retryable and final": not self.retryable & self.final,
        }
        for rule, holds in rules.items():
            if not holds:
                raise BadInput(f"this retry policy cannot work: {rule}", rule=rule)


# The specification gives these tables to the second, so they have no jitter. A step has three attempts, so
# the last entry of its table is reached only where `attempts_max` is raised. A publish is tried again after
# each of its three pauses, and its lease covers all of them.
ACK_RETRY: Final = RetryPolicy(attempts_max=3, table_ms=(60_000, 300_000, 900_000), jitter=0.0)
DISPATCH_RETRY: Final = RetryPolicy(attempts_max=4, table_ms=(30_000, 120_000, 600_000), jitter=0.0)


def error_names(error: type[BaseException]) -> tuple[str, ...]:
    """Return every name under which an error class can be declared, the closest class first.

    >>> error_names(KeyError)[:4]
    ('KeyError', 'builtins.KeyError', 'LookupError', 'builtins.LookupError')
    """
    classes = [ancestor for ancestor in error.__mro__ if ancestor is not object]
    return tuple(
        name for cls in classes for name in (cls.__qualname__, f"{cls.__module__}.{cls.__qualname__}")
    )


def classify(policy: RetryPolicy, names: Iterable[str]) -> ErrorClass:
    """Return the class of an error that goes by these names, the closest class first."""
    for name in names:
        if name in policy.final:
            return ErrorClass.FINAL
        if name in policy.retryable:
            return ErrorClass.RETRYABLE
    return ErrorClass.FINAL


def backoff_ms(policy: RetryPolicy, attempt: int) -> int:
    """Return the delay after this failed attempt before jitter; attempts are counted from 1."""
    assert attempt >= 1, attempt
    if policy.table_ms:
        return policy.table_ms[min(attempt, len(policy.table_ms)) - 1]
    try:
        grown_ms = policy.base_ms * policy.factor ** (attempt - 1)
    except OverflowError:
        return policy.cap_ms if policy.base_ms else 0
    return int(min(grown_ms, policy.cap_ms))


def next_delay_ms(policy: RetryPolicy, attempt: int, key: str) -> int | None:
    """Return how long to wait after this failed attempt, or None when the budget is spent.

    The key (a job or step identifier) spreads failures of the same moment over the jitter.
    """
    if attempt >= policy.attempts_max:
        return None
    delay_ms = backoff_ms(policy, attempt)
    spread_ms = int(delay_ms * policy.jitter)
    return delay_ms - (spread_ms * _draw(key, attempt) >> 64)


def decide_failure(
    policy: RetryPolicy, attempt_no: int, error_class: ErrorClass, *, key: str = ""
) -> RetryAfter | GiveUp:
    """Judge a failed attempt: another one after a delay, or the end.

    The budget is checked here, before any state is left, so that no unit of work waits for a retry
    that will not come.
    """
    if error_class is ErrorClass.FINAL:
        return GiveUp(GiveUpReason.FINAL_ERROR)
    delay_ms = next_delay_ms(policy, attempt_no, key)
    if delay_ms is None:
        return GiveUp(GiveUpReason.BUDGET_SPENT)
    return RetryAfter(delay_ms)


def _draw(key: str, attempt: int) -> int:
    """Return a number in [0, 2**64) that looks random and is the same everywhere."""
    digest = hashlib.sha256(f"{attempt}:{key}".encode()).digest()
    return int.from_bytes(digest[:8])
