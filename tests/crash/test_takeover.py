"""What the sweep found once stays found: races around a lease that ends, told step by step."""

from __future__ import annotations

from typing import Any

from tallystick.clock import VirtualClock
from tallystick.core.ledger.decisions import Reclaim
from tallystick.engine.committer import Committer
from tallystick.engine.segment import Segment
from tallystick.ids import CountingIds
from tallystick.store.sqlite.store import SqliteStore
from tallystick.testing.conformance.drafts import (
    check_chain,
    claim,
    claimed,
    done,
    finish,
    held_job,
    reclaim,
    step,
)
from tallystick.worker.options import WorkerOptions
from tallystick.worker.worker import Worker


def test_a_reclaim_goes_on_from_what_the_holder_wrote_after_the_sweep_had_looked(tmp_path):
    """A flush that began under a live lease may become durable after its end; the chain has one author."""
    early, late = VirtualClock(), VirtualClock()
    holder, sweeper = (SqliteStore(tmp_path / "tally.db", clock) for clock in (early, late))
    held = held_job(holder, early, lease_ms=1_000)
    late.advance(1_000)
    (seen,) = sweeper.expired(10)
    done(holder, step(held, early))
    assert done(sweeper, reclaim(seen)) is Reclaim.RETRY
    (again,) = claimed(sweeper, claim())
    assert [record.name for record in again.records] == ["charge"]
    done(sweeper, finish(again, late))
    check_chain(sweeper.history(held.fence.job_id))
    holder.close()
    sweeper.close()


def test_the_end_of_a_segment_that_lost_its_lease_leaves_its_successor_running(tmp_path):
    clock = VirtualClock()
    store = SqliteStore(tmp_path / "tally.db", clock)
    nobody: Any = None
    committer = Committer(store)
    worker = Worker(store, committer, clock, CountingIds(), {}, WorkerOptions(), nobody)
    first = held_job(store, clock, lease_ms=1_000)
    clock.advance(1_000)
    (seen,) = store.expired(10)
    done(store, reclaim(seen))
    (second,) = claimed(store, claim())
    old, new = (Segment(job, clock) for job in (first, second))
    worker.running[old.job_id] = old
    worker.running[new.job_id] = new
    worker.ended(old, None, None)
    assert worker.running == {new.job_id: new}
    worker.ended(new, None, None)
    assert not worker.running
    committer.close()
    store.close()
