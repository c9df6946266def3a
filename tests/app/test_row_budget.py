"""What a job may cost: rows written and bundles awaited, counted on the real store."""

from __future__ import annotations

import pytest

from tallystick import Retry, StepFailed
from tests.app.by_hand import Hand

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

    hand = Hand(timed, clock)
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

    hand = Hand(timed, clock)
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
    assert Hand(timed, clock).claim() is None
    assert meter.read() == (1, 0)


def test_a_job_claimed_where_it_was_submitted_is_one_bundle_of_four_rows(app):
    @app.workflow
    def flow() -> None: ...

    with app.worker():
        flow.submit().result(10)
        meter = Meter(app)
        flow.submit().result(10)
        _bundles, rows = meter.read()  # the worker may look for work meanwhile, which writes nothing
    assert rows == 4 + 3
