"""A parent is woken once by its last child, however many there are and however they end."""

from __future__ import annotations

from collections import Counter

import pytest

from tallystick import JobFailed, aio, gather
from tallystick.errors import ChildrenFailed


def run_all(hand):
    seen = []
    while (outcome := hand.work()) != "idle":
        seen.append(outcome)
    return seen


@pytest.fixture
def square(timed):
    @timed.workflow
    def square(n: int) -> int:
        if n < 0:
            raise ValueError(f"negative: {n}")
        return n * n

    return square


def test_children_are_joined_in_their_order_in_one_wake_up(timed, hand, square):
    @timed.workflow
    def total(numbers: list[int]) -> list[int]:
        return list(gather(*(square.child(n) for n in numbers)))

    job = total.submit([3, 1, 2])
    assert run_all(hand) == ["Await", "EndJob", "EndJob", "EndJob", "EndJob"]
    assert job.result(5) == [9, 1, 4]
    assert [event.name for event in job.history()] == [
        "submit",
        "claim",
        "suspend",
        "claim",
        "group",
        "return",
    ]
    with timed.transaction() as db:
        ledgers = db.execute("select ledger, kind, acked_at is not null from messages order by ledger")
        groups = db.execute("select ledger, semaphore, state from steps where kind = 'group'")
        semaphores = db.execute("select distinct semaphore from jobs")
    assert groups == [(1_111_100_000_004, 0, "SUCCEEDED")]
    assert [f"{ledger:015d}" for ledger, kind, _ in ledgers if kind == "child"] == [
        "000011000000001",
        "000011000000002",
        "000111100000003",
    ]
    assert all(acked for _, _, acked in ledgers)
    assert semaphores == [(0,)]


@pytest.mark.slow
def test_a_child_that_ends_costs_the_same_statements_in_a_small_group_as_in_a_large_one(
    timed, hand, square, statements, url
):
    """The closer leaves one message and wakes the parent; nobody looks at the other children."""

    @timed.workflow
    def total(n: int) -> int:
        return sum(gather(*(square.child(k) for k in range(n))))

    ends, closers = [], []
    for n in (10, 1_000 if url.startswith("sqlite") else 200):
        total.submit(n)
        hand.work()
        costs = []
        for segment in [segment for _ in range(0, n, 100) for segment in hand.claim_many(100)]:
            statements.clear()
            assert hand.run(segment) == "EndJob"
            costs.append(Counter(name for name in statements if not name.startswith("PRAGMA")))
        assert hand.work() == "EndJob"
        ends += costs[:-1]
        closers.append(costs[-1])
    assert all(cost == ends[0] for cost in ends)
    # On PostgreSQL one statement moves whatever a flush has decided, the closer's word and its parent too.
    on_a_file = url.startswith("sqlite")
    assert ends[0]["move_groups" if on_a_file else "move"] == 1
    waking = Counter(["insert_message", "move_job"] if on_a_file else [])
    assert [cost - ends[0] - Counter(["notify"]) for cost in closers] == [waking, waking]


def test_every_error_of_every_child_is_raised(timed, hand, square):
    @timed.workflow
    def total() -> list[int]:
        return list(gather(*(square.child(n) for n in (1, -2, 3, -4))))

    job = total.submit()
    run_all(hand)
    with pytest.raises(JobFailed, match=r"2 of 4 children failed; the first: .*negative: -2"):
        job.result(5)


def test_the_first_failure_is_enough_when_asked(timed, hand, square):
    @timed.workflow
    def total() -> str:
        try:
            gather(*(square.child(n) for n in (-1, 2, 3)), fail_fast=True)
        except ChildrenFailed as error:
            return f"{len(error.errors)} failed"
        return "fine"

    job = total.submit()
    assert [hand.work() for _ in range(3)] == ["Await", "EndJob", "EndJob"]
    run_all(hand)
    assert job.result(5) == "1 failed"


def test_enough_is_enough(timed, hand, square):
    @timed.workflow
    def first_two() -> int:
        return len(gather(*(square.child(n) for n in range(5)), enough=2))

    job = first_two.submit()
    assert [hand.work() for _ in range(4)] == ["Await", "EndJob", "EndJob", "EndJob"]
    assert job.state() in {"SUCCEEDED", "IN_PROGRESS"}
    run_all(hand)
    assert job.result(5) == 2


def test_a_group_of_none_is_joined_at_once(timed, hand):
    @timed.workflow
    def nothing() -> int:
        return len(gather())

    job = nothing.submit()
    assert hand.work() == "EndJob"
    assert job.result(5) == 0


def test_children_of_children_and_one_alone(timed, hand, square):
    @timed.workflow
    def middle(n: int) -> int:
        return sum(gather(*(square.child(k) for k in range(n))))

    @timed.workflow
    async def top() -> int:
        first = await middle.child(3)
        both = await aio.gather(middle.child(2), square.child(5))
        return first + sum(both)

    job = top.submit()
    run_all(hand)
    assert job.result(5) == 5 + 1 + 25


def test_two_thousand_children_close_two_groups_under_a_real_worker(app):
    @app.workflow
    async def leaf(n: int) -> int:
        return n

    @app.workflow
    async def fan(n: int) -> int:
        one = await aio.gather(*(leaf.child(k) for k in range(n)))
        two = await aio.gather(*(leaf.child(k) for k in range(n)))
        return sum(one) + sum(two)

    with app.worker(concurrency=64):
        job = fan.submit(1_000)
        assert job.result(60) == 999 * 1_000
    with app.transaction() as db:
        assert db.execute(f"select count(*) from steps where job_id = '{job.id}'") == [(2,)]
        assert db.execute("select count(*) from messages where kind = 'resume'") == [(2,)]
