"""Keys that end with their job: which job gets a key that another has, and when arguments are replaced."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Literal, NamedTuple

import msgspec

from tallystick.core.audit.fingerprints import DUE_IN, TURNED, WAS, fingerprint
from tallystick.core.lifecycles import JOB, JobState
from tallystick.core.values import Reservation

Reuse = Literal["never", "after_end", "after_success", "while_active", "debounce", "replace"]

REPLACE: Final = "replace"
"""The fact that a job has other arguments than it was born with, before a worker has claimed it."""

REUSE: Final = "reuse"
"""Where the options of a job say under which rule it was submitted: it may have taken the key of another."""

WAS_HASH: Final = "was_hash"
NEW_HASH: Final = "hash"


class KeyRule(NamedTuple):
    """When a key that another job has may be taken from it, or its arguments be replaced.

    `after_end` and `after_success` take it from a job that has ended, or succeeded. `while_active` too, and
    a job that has not ended is the answer, whatever its arguments are. `debounce` and `replace` give other
    arguments to a job that was never claimed; then the first makes a new job, and the second is refused. A
    debounced job begins `quiet_ms` after its last arguments, at the latest `longest_ms` after its first.
    """

    reuse: Reuse
    quiet_ms: int = 0
    longest_ms: int | None = None


class TakeKey(NamedTuple):
    """Take a key for a job that is submitted behind this in the same bundle, or name the job that has it.

    None: the key is that of the new job now. `Existing`: another has it and keeps it, or has been given these
    arguments; the rest of the bundle is not written. `KeyInUse`: it cannot be given them any more.
    `IdempotencyConflict`: a job of another workflow has it.
    """

    reservation: Reservation
    job_id: str
    created_at: int
    payload: str
    rule: KeyRule
    handler: str


class KeyHolder(NamedTuple):
    """The job that has a key, as a decision about the key sees it."""

    job_id: str
    state: str
    attempt: int
    created_at: int
    content_hash: str
    payload: str
    handler: str


class Keyed(Enum):
    """What becomes of a submission under a key that another job has."""

    TAKE = auto()
    KEEP = auto()
    REPLACE = auto()
    REFUSE = auto()
    CONFLICT = auto()


def decide_key(rule: KeyRule, handler: str, holder: KeyHolder) -> Keyed:
    """Decide which job has the key afterwards; `handler` is the workflow that is submitted.

    A key belongs to one workflow, also when its job has ended: the job of another is neither the answer to
    this submission, nor can it do anything with these arguments.
    """
    if holder.handler != handler:
        return Keyed.CONFLICT
    ended = JobState(holder.state) in JOB.final
    fresh = holder.attempt == 0 and holder.state == JobState.QUEUED
    match rule.reuse:
        case "never":
            return Keyed.KEEP
        case "after_end" | "while_active":
            return Keyed.TAKE if ended else Keyed.KEEP
        case "after_success":
            return Keyed.TAKE if holder.state == JobState.SUCCEEDED else Keyed.KEEP
        case "debounce":
            return Keyed.REPLACE if fresh else Keyed.TAKE
        case "replace":
            return Keyed.REPLACE if fresh else Keyed.REFUSE


def due_at(rule: KeyRule, holder: KeyHolder, ready_at: int | None, now: int) -> int | None:
    """Return when a job is due whose arguments are replaced now; one that is overdue keeps its place."""
    if rule.reuse != "debounce":
        return ready_at
    quiet = now + rule.quiet_ms
    if rule.longest_ms is None:
        return quiet
    latest = holder.created_at + rule.longest_ms
    return min(quiet, latest) if now < latest else min(now, now if ready_at is None else ready_at)


def replacement(holder: KeyHolder, payload: str, content_hash: str, due_in: int | None) -> str:
    """Return what the fact of a replacement says: both arguments, both hashes, and when the job is due."""
    return msgspec.json.encode(
        {
            WAS: fingerprint(holder.payload),
            TURNED: fingerprint(payload),
            WAS_HASH: holder.content_hash,
            NEW_HASH: content_hash,
            DUE_IN: due_in,
        }
    ).decode()
