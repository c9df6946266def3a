"""What a job may cost: rows written and bundles awaited, counted on the real store."""

from __future__ import annotations

import pytest

from tallystick import Retry, StepFailed, start
from tallystick.testing.stepping import Death, SteppedWorker
from tests.patience import wait_until

# SQLite says how many rows a connection has changed; on PostgreSQL the same bundles write the same rows.
pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


class Meter:
    """Rows and bundles since the last reading."""

    def __init__(self, app) -> None:
        self._connection = app.runtime().store._writer
        self._committer = app.runtime().committer
        self.read()

    def read(self) -> tuple[int, int]:
        now = (self._committer.bundles, self._connection.total_changes())
        before, self._before = getattr(self, "_before", now), now
        return now[0] - before[0], now[1] - before[1]


@pytest.mark.parametrize("steps", [0, 1, 10])
def test_a_job_writes_no_more_than_its_budget(timed, clock, steps):
    @timed.step
    def work(n: int) -> int:
        return n

    @timed.workflow
    def flow() -> None:
        for n in range(steps):
            work(n)

    hand = SteppedWorker(timed, clock)
    meter = Meter(timed)
    flow.submit()
    assert meter.read() == (1, 2)
    segment = hand.claim()
    assert meter.read() == (1, 3)
    hand.run(segment)
    assert meter.read() == (steps + 1, steps + 3)


def test_a_submission_with_a_key_writes_one_row_more(timed):
    @timed.workflow
    def flow() -> None: ...

    meter = Meter(timed)
    flow.opts(idempotency_key="k").submit()
    assert meter.read() == (1, 3)
    flow.opts(idempotency_key="k").submit()
    assert meter.read() == (1, 0)


def test_a_failed_try_is_one_bundle_and_one_row(timed, clock):
    @timed.step(retry=Retry(3, first="1ms"))
    def fails() -> None:
        raise RuntimeError("no")

    @timed.workflow
    def flow() -> None:
        try:
            fails()
        except StepFailed:
            return

    hand = SteppedWorker(timed, clock)
    flow.submit()
    segment = hand.claim()
    meter = Meter(timed)
    hand.run(segment)
    # Two failed tries, the step that gave up, and the return.
    assert meter.read() == (4, 2 + 1 + 3)


def test_a_claim_of_nothing_writes_nothing(timed, clock):
    @timed.workflow
    def flow() -> None: ...

    meter = Meter(timed)
    assert SteppedWorker(timed, clock).claim() is None
    assert meter.read() == (1, 0)


def test_a_job_claimed_where_it_was_submitted_is_two_bundles_and_seven_rows(app, monkeypatch):
    """Submitted and claimed is one bundle of four rows, returned another of three."""

    @app.workflow
    def flow() -> None: ...

    with app.worker():
        flow.submit().result(10)
        store, seen = app.runtime().store, []
        wait_until(lambda: store.workers(1), "the worker has reported, and does not again for a while")
        apply = store.apply
        monkeypatch.setattr(store, "apply", lambda batch: seen.extend(batch) or apply(batch))
        meter = Meter(app)
        job = flow.submit()
        job.result(10)
        _bundles, rows = meter.read()  # the worker may look for work meanwhile, which writes nothing
    assert rows == 4 + 3
    mine = [[type(primitive).__name__ for primitive in bundle] for bundle in seen if names(bundle, job.id)]
    assert mine == [["SubmitJob"], ["EndJob"]]


def names(bundle, job_id: str) -> bool:
    """Tell whether a bundle is about this job."""
    return job_id in {
        primitive.job.job_id if hasattr(primitive, "job") else primitive.fence.job_id
        for primitive in bundle
        if hasattr(primitive, "job") or hasattr(primitive, "fence")
    }


def test_a_second_attempt_that_finds_nothing_open_ends_like_a_first(timed, clock):
    """Only what a job may have open makes its end look for it; that it was tried before does not."""

    @timed.workflow
    def flow() -> None: ...

    hand = SteppedWorker(timed, clock)
    flow.submit()
    assert hand.claim() is not None
    hand.expire()
    meter = Meter(timed)
    again = hand.claim()
    assert (again.fence.attempt, again.waited) == (2, False)
    assert meter.read() == (1, 3)
    hand.run(again)
    assert meter.read() == (1, 3)


def test_a_second_attempt_drops_what_the_first_left_open(timed, clock):
    """The first started a child and died; the second comes to it, does not wait for it, and ends."""
    dying = iter([True, False])

    @timed.workflow
    def child() -> None: ...

    @timed.workflow
    def parent() -> str:
        start(child.child())
        if next(dying):
            raise Death
        return "alone"

    hand = SteppedWorker(timed, clock)
    job = parent.submit()
    assert hand.work() == "died"
    hand.expire()
    segment = next(found for found in hand.claim_many(9) if found.job_id == job.id)
    assert (segment.claimed.driver, segment.claimed.semaphore, segment.waited) == ("start", 2, True)
    assert hand.run(segment) == "EndJob"
    assert job.result(5) == "alone"
    row = timed.runtime().store.job(job.id)
    assert (row.semaphore, row.state) == (0, "SUCCEEDED")
