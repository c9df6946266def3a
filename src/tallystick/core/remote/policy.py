"""What a protocol job was submitted with, for all of its life: timeouts, tries, routing, publishers.

It is kept in the row of the job, so that a sweep and a callback decide by it, also where the
protocol itself is not declared.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from tallystick.core.lease import ACK_TIMEOUT_MS, PUBLISH_SLACK_MS, WORK_LEASE_MS
from tallystick.core.remote.rows import PULL
from tallystick.core.retry import ACK_RETRY, DISPATCH_RETRY, RetryPolicy, backoff_ms

Mode: TypeAlias = Literal["DEFAULT", "BURST"]
LANES: Final = 16
START_WITHIN_MS: Final = 86_400_000


class StepTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a remote worker may take to acknowledge, how long its work is leased, and what follows."""

    ack_ms: int = ACK_TIMEOUT_MS
    lease_ms: int = WORK_LEASE_MS
    # How often it is tried and how long it waits in between; as the specification has it, if nothing is said.
    retry: RetryPolicy | None = None

    @property
    def tries(self) -> RetryPolicy:
        """Return how often and how soon the step is tried again."""
        return self.retry or ACK_RETRY


_USUAL: Final = StepTimes()


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of one job; what is not said is as the specification has it."""

    times: dict[str, StepTimes] = {}
    # By which publisher directives for a service go out; a service that is not named is pulled.
    via: dict[str, str] = {}
    start_within_ms: int = START_WITHIN_MS
    mode: Mode = "DEFAULT"
    tenant_mode: Mode | None = None
    lanes: int = LANES
    topic_prefix: str = ""

    def times_of(self, step_id: str) -> StepTimes:
        """Return the timeouts of a step."""
        return self.times.get(step_id, _USUAL)

    def publisher(self, service: str) -> str:
        """Return how directives for a service travel."""
        return self.via.get(service, PULL)

    def written(self) -> str:
        """Return it as the row of a job keeps it."""
        return msgspec.json.encode(self).decode()


@lru_cache(1024)
def policy_of(options: str) -> Policy:
    """Return the rules that a job was submitted with."""
    return msgspec.json.decode(options, type=Policy)


TRIES_MAX: Final = DISPATCH_RETRY.attempts_max


def next_try_ms(tries: int) -> int:
    """Return how long the right to publish lasts that comes with try number `tries`.

    >>> [next_try_ms(tries) for tries in (1, 2, 3, 4)]
    [30000, 120000, 600000, 60000]
    """
    return backoff_ms(DISPATCH_RETRY, tries) if tries < TRIES_MAX else PUBLISH_SLACK_MS


def budget_ms(tries: int) -> int:
    """Return what is left of the time to publish when try `tries` begins: all waits to come, and slack.

    >>> budget_ms(1), budget_ms(4)
    (810000, 60000)
    """
    return sum(next_try_ms(each) for each in range(tries, TRIES_MAX + 1))
