"""Pruning in batches: small ones, each at its time, and again after an error."""

from __future__ import annotations

import pytest

from tallystick import gather
from tallystick.engine import retention
from tallystick.errors import NotFound, StoreError

DAY_MS = 86_400_000


def test_a_batch_is_small_whatever_the_limit(app, monkeypatch):
    """Nobody who writes waits for more than one batch."""
    monkeypatch.setattr(retention, "PRUNE_BATCH_JOBS_MAX", 7)

    @app.workflow
    def flow(n: int) -> int:
        return n

    for job in flow.submit_many([(n,) for n in range(30)]):
        job.cancel()
    asked = []
    committer = app.runtime().committer
    call = committer.call
    monkeypatch.setattr(committer, "call", lambda bundle: asked.append(bundle[0].limit) or call(bundle))
    assert app.prune(older_than=0, limit=20) == 20
    assert asked == [7, 7, 6]
    assert app.prune(older_than=0) == 10


@pytest.mark.slow
def test_a_worker_that_keeps_jobs_for_a_time_removes_them_after_it_and_never_before(timed, hand, clock):
    @timed.workflow
    def flow(n: int) -> int:
        return n

    @timed.workflow
    def family() -> tuple[int, ...]:
        return gather(*(flow.child(n) for n in range(3)))

    waiting = flow.opts(delay="30d").submit(0)
    old = [flow.submit(n) for n in range(450)]
    parent = family.submit()
    while hand.work() != "idle":
        pass
    young_at = DAY_MS - 1
    clock.advance(young_at)
    pruning = retention.Pruning(timed.runtime().committer, DAY_MS, clock.monotonic())
    assert pruned_by(pruning, clock) == []
    clock.advance(60_001)
    young = flow.submit(1)
    while hand.work() != "idle":
        pass
    gone = pruned_by(pruning, clock)
    assert sum(gone) == len(old) + 4
    assert max(gone) <= 200
    assert pruned_by(pruning, clock) == []
    assert young.result(5) == 1
    assert waiting.state() == "QUEUED"
    with pytest.raises(NotFound):
        parent.state()


def pruned_by(pruning, clock):
    """Return what a pass removes, batch by batch; time stands still meanwhile."""
    return [jobs for _ in range(100) if (jobs := pruning.tick(clock.monotonic()))]


def test_a_batch_that_fails_is_tried_again_after_a_pause(timed, hand, clock, monkeypatch):
    committer = timed.runtime().committer
    calls = []

    def away(bundle):
        calls.append(bundle)
        raise StoreError("away")

    monkeypatch.setattr(committer, "call", away)
    pruning = retention.Pruning(committer, DAY_MS, clock.monotonic())
    with pytest.raises(StoreError):
        pruning.tick(clock.monotonic())
    assert pruning.tick(clock.monotonic()) == 0
    assert len(calls) == 1
