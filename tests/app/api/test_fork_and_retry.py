"""A fork keeps what was recorded before a step and goes on from there; a retry is one at the failed step."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import (
    ChildrenFailed,
    Fatal,
    JobFailed,
    StepFailed,
    again,
    aio,
    gather,
    now,
    sleep,
    uuid,
    wait,
)
from tallystick.errors import NoSuchStep, NotFailed, NotFound
from tallystick.testing.stepping import cancel_overdue, check_books
from tests.app.api.test_pause_and_resume import names


def drain(hand, clock=None):
    """Work until nothing is due, and with a clock let time pass too."""
    while True:
        hand.work_all()
        if clock is None:
            return
        clock.advance(60_000)
        if hand.work() == "idle":
            return


def rows(app, question):
    with app.transaction() as db:
        return [tuple(row) for row in db.execute(question)]


def everything(app, job):
    """Return all rows of a job: what must not change when it is forked."""
    return [
        rows(app, f"select * from {table} where job_id = '{job.id}' order by 1, 2, 3, 4")
        for table in ("jobs", "steps", "events", "messages", "attempts")
    ]


def test_a_fork_keeps_the_steps_before_its_point_and_leaves_the_original_alone(timed, hand, clock):
    calls = []

    @timed.step
    def quote(order: int) -> int:
        calls.append("quote")
        return order * 2

    @timed.step
    def charge(price: int) -> str:
        calls.append("charge")
        return f"{len(calls)}: {price}"

    @timed.workflow
    def checkout(order: int) -> str:
        return charge(quote(order))

    job = checkout.submit(21)
    hand.work()
    before = everything(timed, job)
    clock.advance(5_000)
    fork = job.fork(at="charge")
    assert fork.created
    assert fork.id != job.id
    assert everything(timed, job) == before
    assert check_books(timed) == []
    assert hand.work() == "EndJob"
    assert calls == ["quote", "charge", "charge"]
    assert (job.result(5), fork.result(5)) == ("2: 42", "3: 42")
    assert everything(timed, job) == before
    assert names(fork) == ["fork", "step", "claim", "step", "return"]
    assert fork.row().retry_of == job.id
    assert check_books(timed) == []


def test_a_copy_names_its_origin_and_the_chain_of_the_fork_hangs_on_that_of_the_original(timed, hand, clock):
    @timed.step
    def first() -> int:
        return 1

    @timed.workflow
    def flow() -> int:
        return first() + first()

    job = flow.submit()
    hand.work()
    fork = job.fork(at="first#2")
    second = fork.fork(at="first#2") if hand.work() == "EndJob" else None
    origins = rows(
        timed,
        "select job_id, occurrence, ledger, attempt, origin_job_id, origin_dimension from steps "
        f"where job_id in ('{fork.id}', '{second.id}') and origin_job_id is not null order by 1",
    )
    assert origins == [
        (fork.id, 1, 1111000000001, 0, job.id, 0),
        (second.id, 1, 1111000000001, 0, job.id, 0),
    ]
    told = fork.history()[0]
    assert job.history()[2].hash in told.payload
    assert f'"fork_of":"{job.id}"' in told.payload
    hand.work()
    assert second.result(5) == 2
    assert check_books(timed) == []


def test_a_transaction_before_the_point_is_not_made_again(timed, hand, put):
    with timed.transaction() as db:
        db.execute("create table effects (value text)")

    @timed.tx
    def reserve(db, what: str) -> None:
        db.execute(put, [what])

    @timed.workflow
    def flow() -> None:
        reserve("goods")
        reserve("van")

    job = flow.submit()
    hand.work()
    job.fork(at="reserve#2")
    hand.work()
    assert sorted(rows(timed, "select value from effects")) == [("goods",), ("van",), ("van",)]


def test_values_drawn_before_the_last_kept_record_are_kept_and_later_ones_drawn_again(timed, hand, clock):
    seen = []

    @timed.step
    def work() -> None: ...

    @timed.workflow
    def flow() -> None:
        drawn = [now(), uuid()]
        wait("go", bool)
        drawn.append(uuid())
        work()
        drawn.append(uuid())
        work()
        seen.append(drawn)

    job = flow.submit()
    hand.work()
    job.send("go", True)
    clock.advance(1_000)
    hand.work()
    clock.advance(60_000)
    job.fork(at="work")
    job.fork(at="work#2")
    drain(hand)
    original, early, late = seen
    assert early[:2] == original[:2]
    assert len({early[2], original[2]}) == 2
    assert late[:3] == original[:3]
    assert late[3] != original[3]


def test_a_job_that_waits_is_forked_at_its_wait_and_both_are_answered_for_themselves(timed, hand, clock):
    @timed.step
    def quote() -> int:
        return 7

    @timed.workflow
    def flow() -> list[int | bool | None]:
        price = quote()
        return [price, wait("approve", bool, timeout="1d"), wait("approve", bool, timeout="1d")]

    job = flow.submit()
    hand.work()
    job.send("approve", True)
    hand.work()
    fork = job.fork(at="approve#2")
    hand.work()
    fork.send("approve", False)
    job.send("approve", True)
    drain(hand)
    assert (job.result(5), fork.result(5)) == ([7, True, True], [7, True, False])
    assert check_books(timed) == []


def test_a_copied_group_is_read_where_it_was_joined_also_by_a_fork_of_a_fork(timed, hand, clock):
    started = []

    @timed.workflow
    def child(n: int) -> int:
        started.append(n)
        return n

    @timed.step
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    @timed.workflow
    def parent() -> int:
        return add(list(gather(child.child(1), child.child(2))))

    job = parent.submit()
    drain(hand)
    fork = job.fork(at="add")
    drain(hand)
    again_ = fork.fork(at="add")
    drain(hand)
    assert [job.result(5), fork.result(5), again_.result(5)] == [3, 3, 3]
    assert started == [1, 2]
    afresh = fork.fork(at="gather")
    drain(hand)
    assert (afresh.result(5), sorted(started)) == (3, [1, 1, 2, 2])
    assert check_books(timed) == []


def test_a_fork_of_a_later_turn_begins_with_the_arguments_and_records_of_that_turn(timed, hand, clock):
    calls = []

    @timed.workflow
    def child(turn: int) -> int:
        return turn * 10

    @timed.step
    def work(turn: int, tens: int) -> int:
        calls.append((turn, tens))
        return turn

    @timed.workflow
    def loop(turn: int) -> int:
        (tens,) = gather(child.child(turn))
        work(turn, tens)
        return turn if turn == 2 else again(turn + 1)

    job = loop.submit(0)
    drain(hand)
    fork = job.fork(at="work")
    drain(hand)
    assert (job.result(5), fork.result(5)) == (2, 2)
    assert calls == [(0, 0), (1, 10), (2, 20), (2, 20)]
    assert rows(timed, f"select dimension from jobs where job_id = '{fork.id}'") == [(0,)]
    assert check_books(timed) == []


def test_a_step_that_failed_and_was_caught_fails_the_same_in_a_fork(timed, hand):
    tries = []

    @timed.step
    def ask() -> int:
        tries.append(1)
        raise Fatal("nobody there")

    @timed.step
    def work() -> int:
        return 1

    @timed.workflow
    def flow() -> str:
        try:
            ask()
        except StepFailed as error:
            work()
            return str(error)
        return "answered"

    job = flow.submit()
    hand.work()
    fork = job.fork(at="work")
    hand.work()
    assert fork.result(5) == job.result(5)
    assert tries == [1]


def test_a_fork_can_go_on_with_another_version_of_the_code(timed, hand):
    @timed.step
    def work() -> int:
        return 1

    @timed.step
    def mend() -> int:
        return 2

    @timed.workflow(version="1")
    def flow() -> int:
        return work() + wait("never", int)

    @timed.workflow(name="flow", version="2")
    def mended() -> int:
        return work() + mend()

    job = flow.submit()
    hand.work()
    fork = job.fork(at="never", version="2")
    hand.work()
    assert fork.result(5) == 3
    assert job.cancel() == "CANCELLED"


def test_a_point_that_was_never_reached_is_refused_and_the_records_are_named(timed, hand):
    @timed.step
    def work() -> None: ...

    @timed.workflow
    def flow() -> None:
        work()

    job = flow.submit()
    hand.work()
    with pytest.raises(NoSuchStep, match=r"work#2.*work#1"):
        job.fork(at="work#2")
    with pytest.raises(NoSuchStep):
        job.fork(at="")
    with pytest.raises(NotFound):
        timed.job("nobody").fork(at="work")
    assert len(rows(timed, "select job_id from jobs")) == 1


def failing(app, *, once=None):
    """Declare a workflow whose second step fails until somebody mends it."""
    calls = [] if once is None else once

    @app.step
    def quote() -> int:
        calls.append("quote")
        return 7

    @app.step
    def charge(price: int) -> int:
        calls.append("charge")
        if calls.count("charge") == 1:
            raise Fatal("declined")
        return price

    @app.step
    def clean_up() -> None:
        calls.append("clean up")

    @app.workflow
    def checkout() -> int:
        try:
            return charge(quote())
        except StepFailed:
            clean_up()
            raise

    return checkout, calls


def test_a_retry_is_a_fork_at_the_failed_step_even_if_something_was_recorded_after_it(timed, hand, clock):
    checkout, calls = failing(timed)
    job = checkout.submit()
    assert hand.work() == "EndJob"
    assert [one.id for one in timed.dead()] == [job.id]
    retry = job.retry()
    assert retry.created
    assert hand.work() == "EndJob"
    assert retry.result(5) == 7
    assert calls == ["quote", "charge", "clean up", "charge"]
    with pytest.raises(JobFailed):
        job.result(5)
    assert (job.row().retried_as, retry.row().retry_of) == (retry.id, job.id)
    assert timed.dead() == []
    assert check_books(timed) == []


def test_a_retry_that_is_said_twice_is_the_same_job(timed, hand, clock):
    checkout, _calls = failing(timed)
    job = checkout.submit()
    hand.work()
    first, second = job.retry(), job.retry()
    assert (second.id, first.created, second.created) == (first.id, True, False)
    hand.work()
    assert job.retry().id == first.id
    assert len(rows(timed, "select job_id from jobs")) == 2


@pytest.mark.parametrize("by_content", [True, False], ids=["content", "key"])
def test_whoever_submits_under_the_key_of_a_retried_job_gets_the_one_in_its_place(
    timed, hand, clock, by_content
):
    checkout, _calls = failing(timed)
    keyed = checkout.opts(idempotent=True) if by_content else checkout.opts(idempotency_key="o-42")
    job = keyed.submit()
    hand.work()
    fork = job.fork(at="charge")
    assert keyed.submit().id == job.id
    retry = job.retry()
    assert keyed.submit().id == retry.id
    assert (fork.row().idempotency_key, retry.row().idempotency_key) == (None, job.row().idempotency_key)
    drain(hand)
    assert keyed.submit().result(5) == 7
    assert check_books(timed) == []


def test_a_retry_of_a_retry_that_failed_keeps_what_both_recorded(timed, hand, clock):
    calls = []

    @timed.step
    def work(n: int) -> int:
        calls.append(n)
        if calls.count(n) < n:
            raise Fatal("not yet")
        return n

    @timed.workflow
    def flow() -> int:
        return work.named("one")(1) + work.named("two")(2) + work.named("three")(3)

    job = flow.submit()
    hand.work()
    second = job.retry()
    hand.work()
    third = second.retry()
    hand.work()
    last = third.retry()
    hand.work()
    assert last.result(5) == 6
    assert calls == [1, 2, 2, 3, 3, 3]
    assert check_books(timed) == []


def test_a_workflow_that_failed_by_itself_is_retried_with_everything_it_had_recorded(timed, hand):
    calls = []

    @timed.step
    def work() -> int:
        calls.append("work")
        return 1

    @timed.workflow
    def flow() -> int:
        value = work()
        calls.append("after")
        if calls.count("after") == 1:
            raise Fatal("a bug")
        return value

    job = flow.submit()
    hand.work()
    retry = job.retry()
    hand.work()
    assert retry.result(5) == 1
    assert calls == ["work", "after", "after"]


def test_a_parent_that_failed_with_its_children_starts_them_again(timed, hand, clock):
    ran = []

    @timed.workflow
    def child(n: int) -> int:
        ran.append(n)
        if ran == [1, 2]:
            raise Fatal("the second")
        return n

    @timed.workflow
    def parent() -> int:
        return sum(gather(child.child(1), child.child(2)))

    job = parent.submit()
    drain(hand)
    dead = timed.dead()
    assert {one.row().handler for one in dead} == {"parent", "child"}
    assert [one.id for one in timed.dead(workflow="parent")] == [job.id]
    retry = job.retry()
    drain(hand)
    assert (retry.result(5), ran) == (3, [1, 2, 1, 2])
    assert check_books(timed) == []


def test_a_child_is_retried_alone_and_its_parent_knows_nothing_of_it(timed, hand, clock):
    ran = []

    @timed.workflow
    def child() -> int:
        ran.append(1)
        if len(ran) == 1:
            raise Fatal("once")
        return 5

    @timed.workflow
    def parent() -> str:
        try:
            gather(child.child())
        except ChildrenFailed:
            return wait("word", str)
        return "never"

    job = parent.submit()
    drain(hand)
    (dead,) = timed.dead()
    retry = dead.retry()
    drain(hand)
    assert retry.result(5) == 5
    assert rows(timed, f"select parent_job_id from jobs where job_id = '{retry.id}'") == [(None,)]
    job.send("word", "done")
    drain(hand)
    assert job.result(5) == "done"
    assert check_books(timed) == []


@pytest.mark.parametrize("state", ["QUEUED", "SUCCEEDED", "CANCELLED"])
def test_a_job_that_has_not_failed_is_not_retried(timed, hand, state):
    @timed.workflow
    def flow() -> None: ...

    job = flow.submit()
    if state == "SUCCEEDED":
        hand.work()
    if state == "CANCELLED":
        job.cancel()
    with pytest.raises(NotFailed, match=state):
        job.retry()
    with pytest.raises(NotFound):
        timed.job("nobody").retry()
    assert len(rows(timed, "select job_id from jobs")) == 1


def test_a_fork_has_as_much_time_as_the_original_had(timed, hand, clock):
    @timed.workflow(deadline="1h")
    def flow() -> str:
        sleep("10m")
        wait("go", bool)
        return "done"

    job = flow.opts(priority=2, tags=["vip"]).submit()
    drain(hand, clock)
    clock.advance(7_200_000)
    fork = job.fork(at="sleep")
    mine, its = fork.row(), job.row()
    assert mine.deadline_at - mine.created_at == its.deadline_at - its.created_at
    assert (mine.priority, mine.tags, mine.payload) == (its.priority, its.tags, its.payload)
    drain(hand)
    cancel_overdue(timed)
    assert (job.state(), fork.state()) == ("CANCELLED", "IN_PROGRESS")


def test_dead_letters_come_in_pages_newest_first(timed, hand):
    @timed.workflow
    def flow(n: int) -> None:
        raise Fatal(str(n))

    jobs = [flow.submit(n) for n in range(5)]
    drain(hand)
    newest = [job.id for job in reversed(jobs)]
    assert [job.id for job in timed.dead(limit=2)] == newest[:2]
    assert [job.id for job in timed.dead(limit=9, after=jobs[-2])] == newest[2:]
    assert timed.dead(workflow="other") == []


def test_an_async_workflow_is_forked_and_retried_by_an_async_program(timed, hand, clock):
    calls = []

    @timed.step
    async def fetch(name: str) -> str:
        calls.append(name)
        if name == "right" and calls.count("right") == 1:
            raise Fatal("gone")
        return name

    @timed.workflow
    async def flow() -> list[str]:
        left = await fetch("left")
        await aio.sleep("1s")
        return [left, await fetch("right")]

    job = flow.submit()
    drain(hand, clock)

    async def program():
        return await job.retry_aio(), await job.fork_aio(at="sleep")

    retry, fork = asyncio.run(program())
    drain(hand, clock)
    assert retry.result(5) == fork.result(5) == ["left", "right"]
    assert calls.count("left") == 1
    assert check_books(timed) == []


def test_a_worker_runs_a_fork_as_soon_as_it_is_made(app):
    @app.step
    def work() -> int:
        return 1

    @app.workflow
    def flow() -> int:
        return work()

    with app.worker():
        job = flow.submit()
        assert job.result(10) == 1
        assert job.fork(at="work").result(10) == 1
