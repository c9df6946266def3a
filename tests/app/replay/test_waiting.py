"""Waiting holds no thread and no lease, and no wake-up is lost."""

from __future__ import annotations

import pytest

from tallystick import Delivered, aio, sleep, wait
from tallystick.testing.stepping import Death, count_flushes, is_at_rest
from tests.elsewhere import elsewhere
from tests.patience import wait_until


def books(app, job):
    """Return (semaphore, open activities, unacknowledged messages, ledgers of acknowledged ones)."""
    with app.transaction() as db:
        ((semaphore,),) = db.execute(f"select semaphore from jobs where job_id = '{job.id}'")
        ((open_,),) = db.execute(
            f"select count(*) from steps where job_id = '{job.id}' and completed_at is null"
        )
        ledgers = db.execute(
            f"select ledger from messages where job_id = '{job.id}' order by created_at, guid"
        )
    return semaphore, open_, [f"{ledger:015d}" for (ledger,) in ledgers]


@pytest.fixture
def approval(timed):
    @timed.workflow
    def approval() -> str:
        answer = wait("approve", bool, timeout="2d")
        return {True: "yes", False: "no", None: "nobody came"}[answer]

    return approval


def test_a_job_waits_without_a_lease_until_its_signal_comes(timed, hand, approval):
    job = approval.submit()
    assert hand.work() == "Await"
    assert hand.work() == "idle"
    assert books(timed, job) == (1, 1, ["000000000000000"])
    assert job.send("approve", True) is Delivered.WOKE
    assert hand.work() == "EndJob"
    assert job.result(5) == "yes"
    semaphore, open_, ledgers = books(timed, job)
    assert (semaphore, open_) == (0, 0)
    assert sorted(ledgers) == ["000000000000000", "000111100000001"]


def test_a_timeout_answers_when_nobody_does(timed, hand, clock, approval):
    job = approval.submit()
    hand.work()
    clock.advance(2 * 86_400_000 - 1)
    assert hand.work() == "idle"
    clock.advance(1)
    assert hand.work() == "EndJob"
    assert job.result(5) == "nobody came"


def test_of_signal_and_timeout_the_first_wins_and_the_other_is_acknowledged(timed, hand, clock, approval):
    job = approval.submit()
    hand.work()
    clock.advance(2 * 86_400_000)
    job.send("approve", True)
    assert hand.work() == "EndJob"
    assert job.result(5) == "nobody came"
    with timed.transaction() as db:
        assert db.execute("select count(*) from messages where acked_at is null") == [(0,)]


def test_a_signal_that_comes_early_waits_in_the_inbox(timed, hand, approval):
    job = approval.submit()
    assert job.send("approve", False) is Delivered.KEPT
    assert hand.work() == "EndJob"
    assert job.result(5) == "no"
    assert books(timed, job)[:2] == (0, 0)


def test_a_signal_sent_while_the_job_runs_towards_its_wait_is_taken_at_once(timed, hand):
    @timed.workflow
    def flow() -> int:
        assert elsewhere(job.send, "go", 7) is Delivered.KEPT
        return wait("go", int)

    job = flow.submit()
    assert hand.work() == "EndJob"
    assert job.result(5) == 7


def test_signals_of_one_name_are_consumed_in_order_and_a_repeated_id_is_one_signal(timed, hand, clock):
    @timed.workflow
    def flow() -> list[int]:
        return [wait("n", int) for _ in range(3)]

    job = flow.submit()
    for n in (1, 2):
        job.send("n", n, id=f"s{n}")
        clock.advance(1)
        assert job.send("n", 99, id=f"s{n}") is Delivered.KNOWN
    assert hand.work() == "Await"
    assert job.send("n", 3) is Delivered.WOKE
    assert hand.work() == "EndJob"
    assert job.result(5) == [1, 2, 3]


def test_a_crash_after_the_wake_up_redelivers_the_same_message(timed, hand):
    deaths = [1]

    @timed.workflow
    def flow() -> str:
        answer = wait("go", str)
        if deaths:
            deaths.pop()
            raise Death
        return answer

    job = flow.submit()
    hand.work()
    job.send("go", "on")
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert job.result(5) == "on"
    assert books(timed, job) == (0, 0, ["000111100000001"])
    with timed.transaction() as db:
        assert db.execute("select redeliveries from messages") == [(1,)]


@pytest.mark.parametrize(("kind", "options"), [(int | None, {}), (int, {"timeout": "1h"})])
def test_a_signal_without_a_value_is_the_same_on_the_first_run_as_on_replay(timed, hand, kind, options):
    deaths, seen = [1], []

    @timed.workflow
    def flow() -> None:
        seen.append(wait("go", kind, **options))
        if deaths:
            deaths.pop()
            raise Death

    job = flow.submit()
    job.send("go")
    assert hand.work() == "died"
    hand.expire()
    assert hand.work() == "EndJob"
    assert seen == [None, None]


def test_a_wait_for_any_object_takes_plain_data_as_it_is(timed, hand):
    @timed.workflow
    def flow() -> object:
        return wait("go", object)

    job = flow.submit()
    job.send("go", {"a": [1, None]})
    assert hand.work() == "EndJob"
    assert job.result(5) == {"a": [1, None]}


def test_sleeping_is_a_timer_and_survives_everything(timed, hand, clock):
    woken = []

    @timed.workflow
    def nap(times: int) -> int:
        for n in range(times):
            sleep("1h")
            woken.append(n)
        return times

    job = nap.submit(3)
    for _ in range(3):
        assert hand.work() == "Await"
        assert hand.work() == "idle"
        clock.advance(3_600_000)
    assert hand.work() == "EndJob"
    assert job.result(5) == 3
    assert books(timed, job)[:2] == (0, 0)


def test_an_async_workflow_waits_the_same_way(timed, hand, clock):
    @timed.workflow
    async def flow() -> str | None:
        await aio.sleep("1m")
        return await aio.wait("word", str, timeout="1m")

    job = flow.submit()
    assert hand.work() == "Await"
    clock.advance(60_000)
    assert hand.work() == "Await"
    job.send("word", "hello")
    assert hand.work() == "EndJob"
    assert job.result(5) == "hello"


@pytest.mark.slow
def test_a_thousand_waiting_jobs_wake_together(app):
    @app.workflow
    async def flow(n: int) -> int:
        return n + await aio.wait("go", int)

    jobs = flow.submit_many([(n,) for n in range(1_000)])
    with app.worker(concurrency=64):
        wait_until(lambda: is_at_rest(app), "all of them wait")
        for job in jobs:
            job.send("go", 1)
        assert [job.result(20) for job in jobs] == [n + 1 for n in range(1_000)]


def test_a_signal_and_the_claim_of_who_waited_for_it_share_a_flush(app):
    """From the sending to the result: signal and claim, answer and end."""

    @app.workflow
    def flow() -> int:
        return wait("go", int)

    costs = []
    with app.worker(concurrency=4):
        for number in range(5):
            job = flow.submit()
            wait_until(lambda: is_at_rest(app), "it waits")
            before = count_flushes(app)
            job.send("go", number)
            assert job.result(20) == number
            costs.append(count_flushes(app) - before)
    # The worker may happen to look for work in between, which is a flush of its own.
    assert min(costs) <= 2
