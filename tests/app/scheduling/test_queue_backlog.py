"""A claim by limits costs the same whatever waits: a million jobs over ten thousand keys."""

from __future__ import annotations

from itertools import count
from time import process_time

import pytest

from tallystick.clock import SystemClock
from tallystick.core.queues.rows import Limits, declared
from tallystick.engine.submission import Submission, submit_jobs
from tallystick.store.api import ClaimJobs, SaveQueue
from tallystick.store.sqlite.store import SqliteStore

LOOKS = 40


def claims_cpu(path, jobs: int, keys: int) -> float:
    """Return the processor time of a look for 16 jobs, in milliseconds, with so many waiting."""
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
    began = process_time()
    for _ in range(LOOKS):
        request = ClaimJobs("w", ("emails",), handlers, 16, 30_000, lambda: f"l{next(leases)}")
        (claimed,) = store.apply([(request,)])
        seen.update(job.fence.job_id for job in claimed)
    took = process_time() - began
    store.close()
    assert len(seen) == 16 * LOOKS
    return took * 1_000 / LOOKS


@pytest.mark.long
def test_a_claim_by_limits_does_not_cost_more_where_a_million_jobs_wait(tmp_path):
    few = min(claims_cpu(tmp_path / f"few{n}.db", 20_000, 2_000) for n in range(3))
    many = claims_cpu(tmp_path / "many.db", 1_000_000, 10_000)
    assert many < 2 * few, f"{few:.2f} ms with 20,000 jobs, {many:.2f} ms with 1,000,000"
