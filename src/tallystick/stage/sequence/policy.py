"""What a Sequence may decide by itself: how long leases hold, and what becomes of a failure.

Every decision is a pure function of the policy and of what the slot recorded, so a history that is
played again decides the same way, to the millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.core.limits import DURATION_MS_MAX
from tallystick.core.retry import GiveUp, RetryAfter, RetryPolicy, classify, decide_failure
from tallystick.errors import BadInput

# The names under which the reclaimer's own failures can be declared retryable or final.
LEASE_EXPIRED: Final = (
    "LeaseExpired",
    "TimeoutError",
    "builtins.TimeoutError",
    "Exception",
    "builtins.Exception",
)
OFFER_EXPIRED: Final = (
    "OfferExpired",
    "TimeoutError",
    "builtins.TimeoutError",
    "Exception",
    "builtins.Exception",
)

ATTEMPTS_MAX: Final = 0xFFFF  # what two bytes per slot can count


class StuckOffer(StrEnum):
    """What becomes of a DISPATCHED slot that no worker starts."""

    OFFER_AGAIN = "OFFER_AGAIN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class SlotPolicy:
    """The inputs of every decision; two Sequences with equal policies and histories are equal.

    A lease holds for `lease_ms` after its last heartbeat. An offer (DISPATCHED, not started) is stuck
    after `offer_ms`; None means that offers wait for ever, as in a process that starts what it dispatches.
    """

    lease_ms: int = 30_000
    offer_ms: int | None = 60_000
    stuck: StuckOffer = StuckOffer.OFFER_AGAIN
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(jitter=0.0))

    def __post_init__(self) -> None:
        rules = {
            "lease_ms must be between 1 and a century": 1 <= self.lease_ms <= DURATION_MS_MAX,
            "offer_ms must be None or between 1 and a century": self.offer_ms is None
            or 1 <= self.offer_ms <= DURATION_MS_MAX,
            f"attempts_max must be at most {ATTEMPTS_MAX}": self.retry.attempts_max <= ATTEMPTS_MAX,
        }
        for rule, holds in rules.items():
            if not holds:
                raise BadInput(f"this slot policy cannot work: {rule}", rule=rule)


def judge(policy: SlotPolicy, seq: int, attempt: int, error_names: tuple[str, ...]) -> RetryAfter | GiveUp:
    """Return what follows a failed attempt: another one after a delay, or the end.

    >>> judge(SlotPolicy(), 7, 1, ("OSError", "Exception"))
    RetryAfter(delay_ms=1000)
    """
    return decide_failure(policy.retry, attempt, classify(policy.retry, error_names), key=str(seq))
