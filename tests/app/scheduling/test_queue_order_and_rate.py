"""In which order a queue serves its jobs, how many a worker has of it, and how fast they begin."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tallystick.testing.stepping import SteppedWorker


def ordered(timed, hand, **limits) -> list[str]:
    """Return the order in which jobs run that were submitted one by one, with priorities 5, 9, 1 and 5."""
    order: list[str] = []

    @timed.workflow(queue="emails")
    def mail(name: str) -> None:
        order.append(name)

    timed.queue("emails", concurrency=1, **limits)
    timed.declare_queues()
    hand.queues = ("emails",)
    for n, priority in enumerate((5, 9, 1, 5)):
        mail.opts(priority=priority).submit(f"{n}:{priority}")
        mail.opts(priority=priority, limit_key="acme").submit(f"{n}:{priority} acme")
        hand.clock.advance(10)
    hand.work_all()
    return order


def test_a_queue_serves_the_best_priority_first_unless_it_is_told_otherwise(timed, hand):
    order = ordered(timed, hand)
    assert [name for name in order if "acme" not in name] == ["2:1", "0:5", "3:5", "1:9"]
    assert [name for name in order if "acme" in name] == ["2:1 acme", "0:5 acme", "3:5 acme", "1:9 acme"]


def test_a_queue_in_the_order_fifo_serves_the_oldest_first_whatever_its_priority(timed, hand):
    order = ordered(timed, hand, order="fifo")
    assert [name for name in order if "acme" not in name] == ["0:5", "1:9", "2:1", "3:5"]
    assert [name for name in order if "acme" in name] == ["0:5 acme", "1:9 acme", "2:1 acme", "3:5 acme"]


def test_one_worker_has_no_more_jobs_of_a_queue_than_its_worker_concurrency(timed, clock, hand):
    @timed.workflow(queue="emails")
    def mail() -> None: ...

    timed.queue("emails", worker_concurrency=2, concurrency=3)
    timed.declare_queues()
    for _ in range(6):
        mail.submit()
    other = SteppedWorker(timed, clock, owner="other")
    hand.queues = other.queues = ("emails",)
    mine = [hand.claim() for _ in range(3)]
    assert [claimed is not None for claimed in mine] == [True, True, False]
    assert other.claim() is not None
    assert other.claim() is None, "the queue has three slots in all"
    hand.run(mine[0])
    assert hand.claim() is not None


@pytest.mark.slow
def test_jobs_of_a_queue_begin_at_its_rate_over_ten_minutes_by_the_clock_of_the_store(timed, clock, hand):
    @timed.workflow(queue="emails")
    def mail() -> None: ...

    timed.queue("emails", rate="12/1m")
    timed.declare_queues()
    hand.queues = ("emails",)
    mail.submit_many([()] * 150)
    began, start = [], clock.wall_ms()
    while clock.wall_ms() - start < 600_000:
        while hand.work() != "idle":
            began.append(clock.wall_ms() - start)
        clock.advance(hand.ms_to_work() or 1)
    assert 0.98 * 120 <= len(began) <= 1.02 * 120
    assert min(later - first for first, later in pairwise(began)) >= 5_000


def test_a_changed_rate_begins_with_full_buckets(timed, hand):
    @timed.workflow(queue="emails")
    def mail() -> None: ...

    timed.queue("emails", rate="1/1h", key_rate="1/1h")
    timed.declare_queues()
    hand.queues = ("emails",)
    for _ in range(3):
        mail.opts(limit_key="a").submit()
    assert [hand.work(), hand.work()] == ["EndJob", "idle"]
    timed.queues.set("emails", concurrency=5)
    assert hand.work() == "idle", "what has nothing to do with the rate leaves the buckets alone"
    timed.queues.set("emails", rate="1/30s", key_rate="1/30s")
    assert [hand.work(), hand.work()] == ["EndJob", "idle"]
