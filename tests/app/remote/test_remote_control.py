"""What is done to a job reaches its remote steps: cancel, deadline, pause, fork, retry, takeover, again."""

from __future__ import annotations

import asyncio

import pytest

from tallystick import Cancelled, StepFailed, again, gather, wait
from tallystick.errors import JobCancelled, JobFailed, Misuse
from tallystick.testing.remote_hand import Heard, RemoteHand, expire_remote
from tallystick.testing.stepping import cancel_overdue, check_books, die

MINUTE = 60_000


def steps(app, job) -> dict[str, tuple]:
    """Return where the steps of a job stand, by name and occurrence."""
    with app.connect() as db:
        rows = db.execute(
            f"select name, occurrence, state, attempt_no, result from steps where job_id = '{job.id}'"
        )
    return {f"{name}#{occurrence}": tuple(about) for name, occurrence, *about in rows}


def outbox(app, job) -> list[tuple]:
    """Return the directives of a job in order, and why each never went."""
    with app.connect() as db:
        query = "select step_id, attempt_no, state, reason from outbox"
        return [tuple(row) for row in db.execute(f"{query} where job_id = '{job.id}' order by 1, 2")]


@pytest.fixture
def pick(timed):
    @timed.remote("warehouse")
    def pick(order: int) -> int:
        raise NotImplementedError

    return pick


@pytest.fixture
def order(timed, pick):
    @timed.workflow
    def order(number: int) -> int:
        return pick(number) + pick(number + 1)

    return order


@pytest.fixture
def warehouse(timed):
    return RemoteHand(timed, "warehouse")


def test_a_directive_that_nobody_has_is_withdrawn_with_its_job(timed, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    assert job.cancel() == "CANCELLED"
    assert outbox(timed, job) == [("0/pick#1", 1, "FAILED_FINAL", "withdrawn")]
    assert steps(timed, job) == {"pick#1": ("CANCELLED", 1, None)}
    assert warehouse.look() is None
    assert check_books(timed) == []


@pytest.mark.parametrize("said", ["ok", "fail", "retry", "ack timeout", "lease timeout"])
def test_a_step_in_flight_may_end_and_is_not_tried_again(timed, clock, hand, order, warehouse, said):
    job = order.submit(1)
    hand.work()
    directive = warehouse.take()
    if said != "ack timeout":
        directive.ack()
    assert job.cancel() == "CANCELLING"
    assert job.cancel() == "CANCELLING"
    assert (hand.work(), cancel_overdue(timed)) == ("idle", [])
    assert directive.beat().cancelling
    assert check_books(timed) == []
    match said:
        case "ok":
            assert directive.succeed(7) is Heard.ACCEPTED
        case "fail":
            assert directive.fail("BROKEN") is Heard.ACCEPTED
        case "retry":
            assert directive.fail("BUSY", again=True) is Heard.ACCEPTED
        case _:
            clock.advance(30_000 if said == "ack timeout" else 15 * MINUTE)
    expire_remote(timed)
    assert cancel_overdue(timed) == [job.id]
    assert job.state() == "CANCELLED"
    states = {"ok": ("SUCCEEDED", 1, "7")}
    assert steps(timed, job)["pick#1"][0] in ("SUCCEEDED", "FAILED_FINAL", "CANCELLED")
    assert steps(timed, job)["pick#1"] == states.get(said, steps(timed, job)["pick#1"])
    assert (hand.work(), warehouse.look(), expire_remote(timed)) == ("idle", None, 0)
    assert check_books(timed) == []


def test_an_ack_after_the_request_to_end_gives_time_to_work(timed, clock, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    directive = warehouse.take()
    job.cancel()
    clock.advance(20_000)
    assert directive.ack() is Heard.ACCEPTED
    clock.advance(20_000)
    assert (expire_remote(timed), cancel_overdue(timed)) == (0, [])
    assert directive.succeed(1) is Heard.ACCEPTED
    assert cancel_overdue(timed) == [job.id]
    assert check_books(timed) == []


def test_a_deadline_reaches_a_remote_step(timed, clock, hand, order, warehouse):
    job = order.opts(deadline="1m").submit(1)
    hand.work()
    directive = warehouse.take()
    directive.ack()
    clock.advance(MINUTE)
    assert cancel_overdue(timed) == [job.id]
    assert job.state() == "CANCELLING"
    directive.succeed(1)
    cancel_overdue(timed)
    with pytest.raises(JobCancelled, match="deadline"):
        job.result(5)
    assert check_books(timed) == []


def test_no_further_directive_goes_out_for_a_job_that_is_held(timed, clock, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    first = warehouse.take()
    job.pause()
    assert first.fail("BUSY", again=True) is Heard.ACCEPTED
    clock.advance(MINUTE)
    assert expire_remote(timed) == 1
    clock.advance(MINUTE)
    assert (expire_remote(timed), warehouse.look()) == (0, None)
    assert check_books(timed) == []
    job.resume()
    assert expire_remote(timed) == 1
    assert warehouse.take().succeed(1) is Heard.ACCEPTED
    job.pause()
    assert hand.work() == "idle"
    job.resume()
    assert hand.work() == "Await"
    warehouse.take().succeed(2)
    hand.work()
    assert job.result(5) == 3
    assert check_books(timed) == []


def test_a_directive_that_nobody_has_taken_stays_while_its_job_is_held(timed, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    job.pause()
    assert warehouse.look() is None
    assert check_books(timed) == []
    job.resume()
    assert warehouse.take().succeed(1) is Heard.ACCEPTED
    hand.work()
    warehouse.take().succeed(2)
    hand.work()
    assert job.result(5) == 3
    assert check_books(timed) == []


def test_a_fork_has_the_steps_that_ended_and_asks_again_for_the_open_one(timed, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    warehouse.take().succeed(1)
    hand.work()
    open_one = warehouse.take()
    fork = job.fork(at="pick#2")
    assert steps(timed, fork) == {"pick#1": ("SUCCEEDED", None, "1")}
    hand.work()
    directive = warehouse.take()
    assert (directive.row.job_id, directive.row.step_id) == (fork.id, "0/pick#2")
    directive.succeed(5)
    hand.work()
    assert fork.result(5) == 6
    assert open_one.succeed(2) is Heard.ACCEPTED
    hand.work()
    assert job.result(5) == 3
    assert check_books(timed) == []


def test_a_retry_goes_on_behind_the_steps_that_ended(timed, hand, order, warehouse):
    job = order.submit(1)
    hand.work()
    warehouse.take().succeed(1)
    hand.work()
    warehouse.take().fail("BROKEN")
    hand.work()
    assert job.state() == "FAILED_FINAL"
    later = job.retry()
    hand.work()
    warehouse.take().succeed(9)
    hand.work()
    assert later.result(5) == 10
    assert check_books(timed) == []


def test_a_turn_withdraws_what_is_open(timed, clock, hand, pick, warehouse):
    @timed.workflow
    async def order(turn: int) -> int:
        asked = asyncio.ensure_future(later.aio(turn))
        await asyncio.wait([asked], timeout=None) if turn else await quick.aio()
        again(turn + 1)

    @timed.remote("warehouse")
    def later(turn: int) -> int:
        raise NotImplementedError

    @timed.remote("office")
    def quick() -> int:
        raise NotImplementedError

    job = order.submit(0)
    hand.work()
    open_one = warehouse.take()
    RemoteHand(timed, "office").take().succeed(1)
    assert hand.work() == "Cycle"
    assert steps(timed, job)["later#1"][0] == "CANCELLED"
    assert open_one.succeed(1) is Heard.STALE
    hand.work()
    assert warehouse.take().row.step_id == "1/later#1"
    assert check_books(timed) == []


def test_a_worker_that_dies_with_a_result_does_not_ask_again(timed, clock, hand, pick, warehouse):
    deaths = []

    @timed.step
    def note() -> None:
        if not deaths:
            deaths.append(1)
            die()

    @timed.workflow
    def order() -> int:
        got = pick(1)
        note()
        return got

    job = order.submit()
    hand.work()
    warehouse.take().succeed(4)
    assert hand.work() == "died"
    assert check_books(timed) == []
    hand.expire()
    assert (warehouse.look(), hand.work()) == (None, "EndJob")
    assert job.result(5) == 4
    assert len(outbox(timed, job)) == 1
    assert check_books(timed) == []


def test_a_workflow_that_runs_ends_without_its_open_step(timed, hand, warehouse):
    @timed.remote("warehouse")
    async def pick() -> int:
        raise NotImplementedError

    @timed.workflow
    async def order() -> str:
        asked = asyncio.ensure_future(pick())
        try:
            await aio_wait("stop", bool)
        except Cancelled:
            return "cleaned up"
        asked.cancel()
        return "stopped"

    from tallystick.aio import wait as aio_wait

    job = order.submit()
    hand.work()
    directive = warehouse.take()
    job.send("stop", True)
    assert hand.work() == "EndJob"
    assert job.result(5) == "stopped"
    assert directive.succeed(1) is Heard.STALE
    assert steps(timed, job)["pick#1"][0] == "CANCELLED"
    assert check_books(timed) == []


def test_a_directive_that_nobody_has_neither_goes_out_after_a_cancel_nor_delays_the_end(
    timed, hand, pick, warehouse
):
    @timed.workflow
    def order() -> list[int]:
        return gather(pick.later(1), pick.later(2))

    job = order.submit()
    hand.work()
    directive = warehouse.take()
    assert job.cancel() == "CANCELLING"
    assert warehouse.look() is None
    assert directive.succeed(7) is Heard.ACCEPTED
    assert cancel_overdue(timed) == [job.id]
    assert steps(timed, job) == {"pick#1": ("SUCCEEDED", 1, "7"), "pick#2": ("FAILED_FINAL", 1, None)}
    assert outbox(timed, job)[1] == ("0/pick#2", 1, "FAILED_FINAL", "withdrawn")
    assert check_books(timed) == []


def test_a_clean_up_asks_no_remote_worker(timed, hand, pick):
    seen = []

    @timed.workflow
    def order() -> None:
        try:
            pick(1)
        except Cancelled:
            with pytest.raises(Misuse, match="clean up with steps"):
                pick(2)
            seen.append("cleaned up")
            raise

    job = order.submit()
    begun = hand.claim()
    assert job.cancel() == "CANCELLING"
    assert hand.run(begun) == "EndJob"
    assert (seen, job.state()) == (["cleaned up"], "CANCELLED")
    assert outbox(timed, job) == []
    assert check_books(timed) == []


def test_several_at_once_in_an_async_workflow(timed, hand, warehouse):
    @timed.remote("warehouse")
    async def pick(n: int) -> int:
        raise NotImplementedError

    @timed.workflow
    async def order() -> list[int]:
        return list(await asyncio.gather(pick(1), pick(2), pick(3)))

    job = order.submit()
    assert hand.work() == "Await"
    asked = [warehouse.take() for _ in range(3)]
    assert [each.payload["n"] for each in asked] == [1, 2, 3]
    asked[2].succeed(30)
    assert hand.work() == "Await"
    assert check_books(timed) == []
    asked[0].succeed(10)
    asked[1].succeed(20)
    hand.work_all()
    assert job.result(5) == [10, 20, 30]
    assert check_books(timed) == []


def test_several_at_once_in_a_sync_workflow(timed, hand, pick, warehouse):
    @timed.step
    def note(sum_of: int) -> int:
        return sum_of

    @timed.workflow
    def order() -> list[int]:
        got = gather(pick.later(1), pick.later(2), pick.later(3))
        note(sum(got))
        return [*got, *gather(pick.later(4))]

    job = order.submit()
    assert hand.work() == "Await"
    asked = [warehouse.take() for _ in range(3)]
    asked[2].succeed(30)
    assert hand.work() == "Await"
    assert check_books(timed) == []
    asked[0].succeed(10)
    asked[1].succeed(20)
    assert hand.work() == "Await"
    warehouse.take().succeed(40)
    assert hand.work() == "EndJob"
    assert job.result(5) == [10, 20, 30, 40]
    assert len(outbox(timed, job)) == 4
    assert check_books(timed) == []


def test_the_first_error_of_several_is_raised_when_all_have_ended(timed, hand, pick, warehouse):
    @timed.workflow
    def order() -> str:
        try:
            return str(gather(pick.later(1), pick.later(2), pick.later(3)))
        except StepFailed as failed:
            return failed.error_code

    @timed.workflow
    def mixed() -> None:
        gather(pick.later(1), order.child())

    job = order.submit()
    hand.work()
    asked = [warehouse.take() for _ in range(3)]
    asked[2].fail("THIRD")
    assert hand.work() == "Await"
    asked[1].fail("SECOND")
    asked[0].succeed(1)
    hand.work_all()
    assert job.result(5) == "SECOND"
    other = mixed.submit()
    hand.work()
    with pytest.raises(JobFailed, match="gathered by themselves"):
        other.result(5)
    assert check_books(timed) == []


def test_a_signal_and_a_remote_step_side_by_side(timed, hand, pick, warehouse):
    @timed.workflow
    def order() -> tuple[int, bool]:
        first = pick(1)
        return first, wait("paid", bool)

    job = order.submit()
    hand.work()
    job.send("paid", True)
    assert hand.work() == "idle"
    warehouse.take().succeed(1)
    hand.work()
    assert job.result(5) == (1, True)
    assert check_books(timed) == []
