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
