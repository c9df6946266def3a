"""A remote step that is asked for and cancelled in one flush never goes out."""

from __future__ import annotations

from tallystick.core.lifecycles import JobState
from tallystick.store.api import Await, CancelJob
from tallystick.testing.stepping import check_books


def test_a_job_may_be_cancelled_in_the_very_flush_in_which_it_asks(timed, hand, monkeypatch):
    @timed.remote("warehouse")
    def pick(order: int) -> int:
        raise NotImplementedError

    @timed.workflow
    def order(number: int) -> int:
        return pick(number)

    job, committer = order.submit(1), timed.runtime().committer
    one_by_one = committer.call

    def both_at_once(bundle, *more, **options):
        if not any(isinstance(request, Await) for request in bundle):
            return one_by_one(bundle, *more, **options)
        suspended, cancelled = committer.call_all([bundle, (CancelJob(job.id, 0),)])
        assert cancelled == JobState.CANCELLED
        return suspended

    monkeypatch.setattr(committer, "call", both_at_once)
    hand.work()
    with timed.connect() as db:
        rows = list(db.execute("select step_id, attempt_no, state, reason from outbox"))
    assert rows == [("0/pick#1", 1, "FAILED_FINAL", "withdrawn")]
    assert check_books(timed) == []
