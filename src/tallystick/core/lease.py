"""Lease rules: who may act, until when, and the one fence that every report passes.

A report is accepted only with the current (attempt, lease), in the right state, before the lease expires.
The store makes the same check in the transaction that writes; these functions are what it must agree with.
Instants are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tallystick.core.retry import DISPATCH_RETRY

# The clock of the ACK starts when the message is out, the work lease when the ACK is in.
ACK_TIMEOUT_MS: Final = 30_000
WORK_LEASE_MS: Final = 900_000

# While a message is on its way out the lease covers every wait of the publish budget, and the tries.
PUBLISH_SLACK_MS: Final = 60_000
PUBLISH_LEASE_MS: Final = sum(DISPATCH_RETRY.table_ms) + PUBLISH_SLACK_MS

# A worker holds its jobs by short leases: how long a crash goes unnoticed is the lease and one sweep.
WORKER_LEASE: Final = "30s"
HEARTBEATS_PER_LEASE: Final = 3

# What a running job has to clean up after it was asked to end, unless the canceller says otherwise.
CANCEL_GRACE_MS: Final = 30_000


class StaleReason(StrEnum):
    """Why a report came too late, the first reason that applies."""

    NOT_LEASED = "NOT_LEASED"
    OTHER_ATTEMPT = "OTHER_ATTEMPT"
    OTHER_LEASE = "OTHER_LEASE"
    WRONG_STATE = "WRONG_STATE"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one owner to act for one attempt, until it expires."""

    attempt: int
    lease_id: str
    owner: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Held:
    """The report may be written: this lease stands behind it."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Stale:
    """The report must change nothing."""

    reason: StaleReason


def is_live(now: int, expires_at: int | None) -> bool:
    """Tell whether a lease still counts; at the very instant of its end it does not."""
    return expires_at is not None and now < expires_at


def fence(
    row: Lease | None, *, attempt: int, lease_id: str, state: str, allowed: Collection[str], now: int
) -> Held | Stale:
    """Judge a report that names (attempt, lease_id) against the row as it is in the store.

    Only the row knows when its lease ends, since a heartbeat may have moved it. Whether `state` is right
    depends on the report, hence `allowed`. WRONG_STATE and EXPIRED are said only to the row's own holder.
    """
    if row is None:
        return Stale(StaleReason.NOT_LEASED)
    if attempt != row.attempt:
        return Stale(StaleReason.OTHER_ATTEMPT)
    if lease_id != row.lease_id:
        return Stale(StaleReason.OTHER_LEASE)
    if state not in allowed:
        return Stale(StaleReason.WRONG_STATE)
    if not is_live(now, row.expires_at):
        return Stale(StaleReason.EXPIRED)
    return Held(row)


def renew(
    row: Lease | None,
    *,
    attempt: int,
    lease_id: str,
    state: str,
    allowed: Collection[str],
    now: int,
    lease_ms: int,
) -> Held | Stale:
    """Extend the lease of its holder; never revive one that has ended, never shorten one."""
    verdict = fence(row, attempt=attempt, lease_id=lease_id, state=state, allowed=allowed, now=now)
    if isinstance(verdict, Stale):
        return verdict
    expires_at = max(verdict.lease.expires_at, now + lease_ms)
    return Held(replace(verdict.lease, expires_at=expires_at))


def heartbeat_ms(lease_ms: int) -> int:
    """Return the time between heartbeats: two may be lost before the lease is."""
    return max(1, lease_ms // HEARTBEATS_PER_LEASE)
