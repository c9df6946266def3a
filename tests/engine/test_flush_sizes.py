"""A flush stays small enough to wait for, however much meets in the committer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tallystick.core.limits import FLUSH_BUNDLES_MAX
from tests.patience import wait_until


def test_lists_that_meet_in_the_committer_do_not_make_a_flush_that_nobody_can_wait_for(app, monkeypatch):
    @app.workflow
    def flow(n: int) -> int:
        return n

    store, flushed = app.runtime().store, []
    apply = store.apply
    gathered = threading.Event()

    def watched(batch):
        flushed.append(sum(len(primitive.job_ids) for (primitive,) in batch))
        gathered.wait(10)  # until all lists are there
        return apply(batch)

    monkeypatch.setattr(store, "apply", watched)
    with ThreadPoolExecutor(max_workers=5) as pool:
        lists = [pool.submit(flow.submit_many, [(n,) for n in range(700)]) for _ in range(5)]
        queue = app.runtime().committer._queue
        wait_until(lambda: sum(flushed) + 700 * len(queue) == 3_500, "all lists are in a flush or queued")
        gathered.set()
        made = {job.id for submitted in lists for job in submitted.result(30)}
    assert len(made) == sum(flushed) == 3_500
    assert max(flushed) < 2 * FLUSH_BUNDLES_MAX
