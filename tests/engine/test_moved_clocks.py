"""Somebody sets the clock of the machine: on a file nothing stands still, and nothing is due before its time.

A clock that is put forward is believed: what was promised for an instant that it has passed is due. A clock
that is set back is not: whatever was promised goes on as if nobody had touched it.
"""

from __future__ import annotations

import pytest

from tallystick import Delivered, Retry, Tally, aio, gather, sleep, wait
from tallystick.errors import DeadlineExceeded
from tallystick.testing.stepping import SteppedWorker, cancel_overdue, open_store

HOUR, YEAR = 3_600_000, 365 * 86_400_000
BACK = pytest.mark.parametrize("jump", [-HOUR, -YEAR], ids=["an hour back", "a year back"])
MOVED = pytest.mark.parametrize(
    "jump", [-YEAR, -HOUR, HOUR, YEAR], ids=["a year back", "an hour back", "an hour on", "a year on"]
)
# Who has tried, in whatever process of a test.
TRIED: list[Tally] = []
# The server counts its own clock, and those of all others may be wrong: postgres/faults/test_wrong_clocks.py
pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture(params=["ran before", "starts after", "starts after a boot"])
def worker(request, url, clock):
    """A process on the same machine that takes up what others left, with all kinds of workflows."""
    made: list[Tally] = []

    def start() -> SteppedWorker:
        if not made:
            made.append(declare(Tally(url, clock=clock)))
            open_store(made[0])
        return SteppedWorker(made[0], clock)

    if request.param == "ran before":
        start()

    def later() -> SteppedWorker:
        if request.param == "starts after a boot":
            clock.reboot()
        return start()

    yield later
    for app in made:
        app.close()


def declare(app: Tally) -> Tally:
    @app.workflow
    def plain() -> str:
        return "done"

    @app.workflow
    def sleeper() -> str:
        sleep("10s")
        return "done"

    @app.workflow
    async def async_sleeper() -> str:
        await aio.sleep("10s")
        return "done"

    @app.workflow
    def listener() -> int | None:
        return wait("go", int, timeout="10s")

    @app.step(retry=Retry(2, first="10s"))
    def once_more() -> str:
        TRIED.append(app)
        if len(TRIED) == 1:
            raise RuntimeError("not yet")
        return "done"

    @app.workflow
    def retries() -> str:
        return once_more()

    @app.workflow
    def parent() -> list[str]:
        return gather(plain.child(), sleeper.child())

    return app


def flow(app: Tally, name: str):
    return app.workflows[name, ""]


@pytest.fixture
def submitter(timed):
    TRIED.clear()
    return declare(timed)


@MOVED
def test_what_is_queued_is_run_whatever_the_clock_says(submitter, clock, worker, jump):
    before = flow(submitter, "plain").submit()
    clock.jump_wall(jump)
    hand = worker()
    assert hand.work() == "EndJob"
    assert before.result(5) == "done"
    after = flow(submitter, "plain").submit()
    assert hand.work() == "EndJob"
    assert after.result(5) == "done"


@BACK
def test_what_was_submitted_while_the_clock_was_wrong_is_run_when_it_is_right(submitter, clock, worker, jump):
    clock.jump_wall(-jump)
    job = flow(submitter, "plain").submit()
    clock.jump_wall(jump)
    assert worker().work() == "EndJob"
    assert job.result(5) == "done"


@BACK
@pytest.mark.parametrize("kind", ["sleeper", "async_sleeper", "listener", "retries"])
def test_what_waits_ten_seconds_waits_ten_seconds(submitter, clock, hand, worker, jump, kind):
    job = flow(submitter, kind).submit()
    hand.work()
    # The pause before another try is drawn.
    left = job.row().ready_at - clock.wall_ms()
    assert left == 10_000 or (kind == "retries" and 4_000 < left < 10_000)
    clock.advance(2_000)
    clock.jump_wall(jump)
    taker = worker()
    assert taker.work() == "idle"
    clock.advance(left - 2_001)
    assert taker.work() == "idle"
    # Nobody knows how late it was when the machine went down: only how late it was at the last fact.
    clock.advance(1 if clock.epoch() == "boot-1" else 2_001)
    taker.work_all()
    assert job.result(5) == (None if kind == "listener" else "done")


@MOVED
@pytest.mark.parametrize("kind", ["sleeper", "async_sleeper", "listener"])
def test_a_clock_that_is_set_while_a_wait_lingers_changes_nothing(
    submitter, clock, hand, jump, kind, monkeypatch
):
    def set_meanwhile(*_about) -> None:
        clock.advance(50)
        clock.jump_wall(jump)

    async def set_meanwhile_async(*_about) -> None:
        set_meanwhile()

    monkeypatch.setattr("tallystick.app.replay.waits.stay", set_meanwhile)
    monkeypatch.setattr("tallystick.app.replay.async_waits.stay_async", set_meanwhile_async)
    job = flow(submitter, kind).submit()
    hand.work()
    clock.advance(9_949)
    assert (hand.work(), job.state()) == ("idle", "IN_PROGRESS")
    clock.advance(1)
    hand.work_all()
    assert job.result(5) == (None if kind == "listener" else "done")


@BACK
def test_a_delay_lasts_as_long_as_it_was_to(submitter, clock, worker, jump):
    job = flow(submitter, "plain").opts(delay="10s").submit()
    clock.jump_wall(jump)
    hand = worker()
    later = flow(submitter, "plain").opts(delay="10s").submit()
    clock.advance(9_999)
    assert hand.work() == "idle"
    clock.advance(1)
    hand.work_all()
    assert [job.result(5), later.result(5)] == ["done", "done"]


@pytest.mark.parametrize("jump", [HOUR, YEAR])
def test_a_clock_that_is_put_forward_is_believed_and_one_that_is_put_right_again_stops_nothing(
    submitter, clock, hand, worker, jump
):
    job = flow(submitter, "sleeper").submit()
    hand.work()
    clock.jump_wall(9_999)
    taker = worker()
    assert taker.work() == "idle"
    clock.jump_wall(jump)
    taker.work_all()
    assert job.result(5) == "done"
    another = flow(submitter, "sleeper").submit()
    taker.work()
    clock.jump_wall(-jump)
    clock.advance(9_999)
    assert taker.work() == "idle"
    clock.advance(1)
    taker.work_all()
    assert another.result(5) == "done"


@MOVED
def test_a_signal_wakes_its_job_at_once(submitter, clock, hand, worker, jump):
    job = flow(submitter, "listener").submit()
    hand.work()
    clock.jump_wall(min(jump, 9_000))
    taker = worker()
    assert job.send("go", 7) is Delivered.WOKE
    taker.work_all()
    assert job.result(5) == 7


@BACK
def test_a_family_gathers(submitter, clock, hand, worker, jump):
    job = flow(submitter, "parent").submit()
    hand.work()
    clock.jump_wall(jump)
    taker = worker()
    taker.work_all()
    clock.jump_wall(jump)
    clock.advance(10_000)
    taker.work_all()
    assert job.result(5) == ["done", "done"]


@MOVED
def test_a_job_of_a_lost_worker_is_taken_up_at_once(submitter, clock, hand, worker, jump):
    job = flow(submitter, "plain").submit()
    assert hand.claim() is not None
    clock.jump_wall(jump)
    taker = worker()
    assert taker.expire() == 1
    assert taker.work() == "EndJob"
    assert job.result(5) == "done"


@BACK
def test_the_grace_of_a_cancellation_lasts_as_long_as_it_was_to(submitter, clock, hand, jump):
    flow(submitter, "plain").submit()
    segment = hand.claim()
    submitter.job(segment.job_id).cancel(grace="5s")
    store = hand.runtime.store
    clock.jump_wall(jump)
    clock.advance(4_999)
    assert store.overdue(10) == []
    clock.advance(1)
    assert store.overdue(10) == [(segment.job_id, False)]


@BACK
def test_a_deadline_passes_when_it_was_to(submitter, clock, hand, jump):
    wish = flow(submitter, "sleeper").opts(deadline="15s")
    in_time, late = wish.submit(), wish.submit()
    hand.work_all()
    clock.jump_wall(jump)
    clock.advance(10_000)
    hand.work()
    assert in_time.result(5) == "done"
    assert cancel_overdue(submitter) == []
    clock.jump_wall(-jump)
    clock.advance(5_000)
    assert cancel_overdue(submitter) == [late.id]
    with pytest.raises(DeadlineExceeded):
        late.result(5)


@BACK
def test_books_are_kept_as_long_as_they_were_to_be(submitter, clock, hand, jump):
    job = flow(submitter, "plain").submit()
    hand.work()
    clock.jump_wall(jump)
    clock.advance(59_999)
    assert submitter.prune(older_than="1m") == 0
    clock.advance(1)
    assert submitter.prune(older_than="1m") == 1
    assert hand.runtime.store.job(job.id) is None


@BACK
def test_a_worker_sleeps_no_longer_than_to_the_next_due_job(submitter, clock, hand, jump):
    flow(submitter, "plain").opts(delay="10s").submit()
    store = hand.runtime.store
    clock.jump_wall(jump)
    hand.work()
    assert store.next_due(("default",), clock.wall_ms()) == clock.wall_ms() + 10_000
    assert store.next_due(("default",), clock.wall_ms() - jump) == clock.wall_ms() + 10_000


def undone(app: Tally) -> None:
    with app.transaction() as db:
        flow(app, "plain").opts(within=db).submit()
        raise RuntimeError("never mind")


@BACK
def test_what_was_undone_with_a_users_transaction_is_learnt_again(submitter, clock, hand, worker, jump):
    clock.jump_wall(-jump)
    with pytest.raises(RuntimeError):
        undone(submitter)
    job = flow(submitter, "plain").submit()
    clock.jump_wall(jump)
    assert worker().work() == "EndJob"
    assert job.result(5) == "done"


def test_the_mark_is_written_once_each_time_that_the_clock_is_put_forward(submitter, clock, hand):
    def rows() -> int:
        before = hand.runtime.store._writer.total_changes()
        flow(submitter, "plain").submit()
        return hand.runtime.store._writer.total_changes() - before

    counted = []
    for jump in (0, 0, HOUR, 0, -HOUR, 0, HOUR, 0, 500, -500, 2 * HOUR, 0):
        clock.jump_wall(jump)
        clock.advance(10)
        counted.append(rows() - 2)
    assert counted == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]


def test_a_clock_that_is_behind_by_less_than_a_second_is_followed(submitter, clock, hand):
    first = flow(submitter, "plain").submit()
    clock.jump_wall(-900)
    second = flow(submitter, "plain").submit()
    assert second.row().created_at == clock.wall_ms() == first.row().created_at - 900
