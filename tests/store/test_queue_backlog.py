"""A claim by limits costs the same whatever waits: a million jobs over ten thousand keys.

What is counted are the steps of SQLite: how long they take depends on how much of a large file is in
memory.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import apsw
import pytest

from tallystick.clock import SystemClock
from tallystick.core.queues.rows import Limits, declared
from tallystick.engine.submission import Submission, submit_jobs
from tallystick.store.api import ClaimJobs, SaveQueue
from tallystick.store.sql.queueing.keyless import WINDOW
from tallystick.store.sqlite.store import SqliteStore

LOOKS = 40


def steps_of_claims(path, jobs: int, keys: int) -> float:
    """Return how many steps a look for 16 jobs takes, with so many waiting."""
    clock, ids, leases = SystemClock(), count(1), count(1)
    store = SqliteStore(path, clock, synchronous="OFF")
    limits = declared(None, "emails", Limits(concurrency=10_000, per_key=1, key_rate="1/1h"), 1)
    assert store.apply([(SaveQueue(limits, None),)]) == [None]
    each = jobs // keys
    for key in range(keys):
        like = Submission(handler="pay", payload="{}", queue="emails", limit_key=f"k{key:06}")
        names = [f"{next(ids):036}" for _ in range(each)]
        for primitive in submit_jobs(like, ["{}"] * each, names, clock.wall_ms()):
            store.apply([(primitive,)])
    handlers = frozenset({("pay", "")})
    seen: set[str] = set()
    steps: list[int] = []

    def note(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    store._writer.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    for _ in range(LOOKS):
        request = ClaimJobs("w", ("emails",), handlers, 16, 30_000, lambda: f"l{next(leases)}")
        (claimed,) = store.apply([(request,)])
        seen.update(job.fence.job_id for job in claimed)
    store.close()
    assert len(seen) == 16 * LOOKS
    return sum(steps) / LOOKS


@pytest.mark.parametrize(
    ("jobs", "keys"), [(20_000, 2_000), pytest.param(1_000_000, 10_000, marks=pytest.mark.long)]
)
def test_a_claim_by_limits_takes_no_more_steps_where_many_jobs_wait(tmp_path, jobs, keys):
    few = steps_of_claims(tmp_path / "few.db", 2_000, 1_000)
    many = steps_of_claims(tmp_path / "many.db", jobs, keys)
    assert many < 1.1 * few, f"{few:.0f} steps with 2,000 jobs, {many:.0f} with {jobs:,}"


def looks_for_keyless(path, before: int) -> tuple[int, int]:
    """Return after how many looks three jobs without a key are claimed, and the steps of the longest look."""
    clock, ids, leases = SystemClock(), count(1), count(1)
    store = SqliteStore(path, clock, synchronous="OFF")
    assert store.apply([(SaveQueue(declared(None, "emails", Limits(per_key=1), 1), None),)]) == [None]
    for key, how_many in (("busy", 1 + before), (None, 3)):
        like = Submission(handler="pay", payload="{}", queue="emails", limit_key=key)
        names = [f"{next(ids):036}" for _ in range(how_many)]
        for primitive in submit_jobs(like, ["{}"] * how_many, names, clock.wall_ms()):
            store.apply([(primitive,)])
    steps: list[int] = []
    store._writer.trace_v2(
        apsw.SQLITE_TRACE_PROFILE,
        lambda event: steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
    )
    handlers = frozenset({("pay", "")})
    request = ClaimJobs("w", ("emails",), handlers, 1, 30_000, lambda: f"l{next(leases)}")
    looks = most = keyless = 0
    while keyless < 3:
        steps.clear()
        (claimed,) = store.apply([(request,)])
        keyless += sum(int(job.fence.job_id) > 1 + before for job in claimed)
        looks, most = looks + 1, max(most, sum(steps))
    store.close()
    return looks, most


def test_jobs_without_a_key_are_found_behind_many_with_one_and_no_look_is_longer(tmp_path):
    """All of them are due at one instant, and the key of the many is busy."""
    (_looks, few), (looks, many) = (
        looks_for_keyless(tmp_path / f"{windows}.db", windows * WINDOW) for windows in (4, 30)
    )
    assert many < 1.1 * few, f"{few} steps behind 4 windows of jobs, {many} behind 30"
    assert looks <= 30 + 5
